/* SPDX-License-Identifier: MIT */
/*
 * From a program counter to its module's call-frame information: by glibc's
 * lock-free _dl_find_object (2.35), or where that is missing by a table of our
 * own, which is written outside handlers and read inside them.
 */
#ifndef COLLECT_SIGNAL_MODULE_H
#define COLLECT_SIGNAL_MODULE_H

#include "collect/signal/cfi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The module that holds pc; hdr is NULL when it has no .eh_frame_hdr.
 * False: no module holds it. Safety: AS-READY. */
bool
cpprof__module_find(uintptr_t pc, struct cpprof__cfi *cfi);

/* Is _dl_find_object missing, or made to seem so? */
bool
cpprof__module_needs_table(void);

/* For tests: as where there is no _dl_find_object. */
void
cpprof__module_use_table(bool use);

/*
 * Replace the table. modules are sorted by lo and do not overlap. One thread
 * at a time; false: out of memory, the old table stays. Not AS.
 */
bool
cpprof__module_publish(const struct cpprof__cfi *modules, size_t n);

#endif
