/* SPDX-License-Identifier: MIT */
/*
 * Numbers for label sets, which are immutable and never freed: each is put
 * into a table of fixed size the first time that a sample carries it. Where a
 * set finds no room, its samples go without.
 */
#ifndef COLLECT_SIGNAL_HEAP_LABELS_H
#define COLLECT_SIGNAL_HEAP_LABELS_H

#include <stdint.h>

#define CPPROF__HEAP_LABEL_SETS 4096u

/* Places are filled in no order; NULL: free. */
#pragma GCC visibility push(hidden)
extern const void *cpprof__heap_label_sets[CPPROF__HEAP_LABEL_SETS];
#pragma GCC visibility pop

/* The set's place + 1; 0 for no set, or no room. Safety: AS. */
uint32_t
cpprof__heap_label_number(const void *set);

#endif
