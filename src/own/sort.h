/* SPDX-License-Identifier: MIT */
/*
 * Sorts in place. qsort() asks malloc for memory where the array is not small,
 * and malloc is the program's. Items that compare equal come in any order.
 */
#ifndef OWN_SORT_H
#define OWN_SORT_H

#include <stddef.h>

void
cpprof__sort(void *items, size_t n, size_t item_bytes,
             int (*compare)(const void *a, const void *b));

/* The same, with what the comparison needs to know. */
void
cpprof__sort_by(void *items, size_t n, size_t item_bytes,
                int (*compare)(const void *a, const void *b, void *ctx),
                void *ctx);

#endif
