/* SPDX-License-Identifier: MIT */
/*
 * Numbers for label sets: each content is put into a table of fixed size the
 * first time that a sample carries it, with a hold on the set that brought it,
 * which is never given back. A set that finds no room has a number that no
 * set has.
 */
#ifndef COLLECT_SIGNAL_LABEL_NUMBERS_H
#define COLLECT_SIGNAL_LABEL_NUMBERS_H

#include <stdint.h>

#define CPPROF__LABEL_SETS  4096u
#define CPPROF__LABELS_LOST (CPPROF__LABEL_SETS + 1)

/* Of struct cpprof__label_set. Slots are filled in no order; NULL: free. */
#pragma GCC visibility push(hidden)
extern const void *cpprof__label_sets_numbered[CPPROF__LABEL_SETS];
#pragma GCC visibility pop

/* The slot + 1 of a set that is not freed meanwhile; 0 for no set,
 * CPPROF__LABELS_LOST for no room. Safety: AS. */
uint32_t
cpprof__label_set_number(const void *set);

#endif
