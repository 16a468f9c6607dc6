/* SPDX-License-Identifier: MIT */
/* What a struct cpprof_heap is in the tables. */
#ifndef COLLECT_HEAP_NUMBER_H
#define COLLECT_HEAP_NUMBER_H

#include <cpprof/heap.h>

uint16_t
cpprof__heap_number(const struct cpprof_heap *heap);

/* In a child made by fork: another thread may have been adding one. */
void
cpprof__heaps_in_child(void);

#endif
