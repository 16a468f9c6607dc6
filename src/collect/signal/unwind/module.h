/* SPDX-License-Identifier: MIT */
/*
 * From a program counter to its module's call-frame information: by glibc's
 * lock-free _dl_find_object (2.35), or where that is missing by a table of our
 * own, which is written outside handlers and read inside them.
 */
#ifndef COLLECT_SIGNAL_MODULE_H
#define COLLECT_SIGNAL_MODULE_H

#include "collect/signal/unwind/cfi.h"

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

/* As where there is no _dl_find_object: in a program that is linked statically,
 * and for tests. */
void
cpprof__module_use_table(bool use);

/*
 * The table: two buffers and a version, whose low bit says which buffer is
 * current. The writer (runtime/modules.c) fills the other one and then raises
 * the version. A reader that finds another version after its search than before
 * may have read a buffer that was being refilled, and searches again. Nothing
 * locks, and a thread that dies or forks inside a search leaves nothing behind.
 *
 * A reader may be late, and still in a buffer that changes. Arrays that became
 * too small are therefore kept for ever; they double, so that all of them
 * together are less than the current one. The writer sets n to 0 before it
 * replaces an array, and a reader takes n first, so that a larger n never goes
 * with the smaller array.
 */
struct cpprof__module_entry {
    uintptr_t lo; /* as in struct cpprof__cfi; sorted by this */
    uintptr_t hi;
    uintptr_t hdr;
};

struct cpprof__module_buffer {
    /* Written by the writer, read by handlers. */
    struct cpprof__module_entry *entries;
    size_t n;
    /* The writer's. */
    size_t capacity;
};

struct cpprof__module_table {
    struct cpprof__module_buffer buffers[2];
    uint64_t version;
};
extern __attribute__((
    visibility("hidden"))) struct cpprof__module_table cpprof__module_table;

#endif
