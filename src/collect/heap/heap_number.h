/* SPDX-License-Identifier: MIT */
/* What a struct cpprof_heap is in the tables. */
#ifndef COLLECT_HEAP_NUMBER_H
#define COLLECT_HEAP_NUMBER_H

#include <cpprof/heap.h>

uint16_t
cpprof__heap_number(const struct cpprof_heap *heap);

#endif
