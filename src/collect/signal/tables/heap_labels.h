/* SPDX-License-Identifier: MIT */
/*
 * Numbers for label sets: each content is put into a table of fixed size the
 * first time that a sample carries it, with a hold on the set that brought it,
 * which is never given back. A set that finds no room has a number that no
 * set has.
 */
#ifndef COLLECT_SIGNAL_HEAP_LABELS_H
#define COLLECT_SIGNAL_HEAP_LABELS_H

#include <stdint.h>

#define CPPROF__HEAP_LABEL_SETS  4096u
#define CPPROF__HEAP_LABELS_LOST (CPPROF__HEAP_LABEL_SETS + 1)

/* Of struct cpprof__label_set. Places are filled in no order; NULL: free. */
#pragma GCC visibility push(hidden)
extern const void *cpprof__heap_label_sets[CPPROF__HEAP_LABEL_SETS];
#pragma GCC visibility pop

/* The place + 1 of a set that is not freed meanwhile; 0 for no set,
 * CPPROF__HEAP_LABELS_LOST for no room. Safety: AS. */
uint32_t
cpprof__heap_label_number(const void *set);

#endif
