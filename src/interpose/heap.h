/* SPDX-License-Identifier: MIT */
/* The heap profiler's first step. */
#ifndef INTERPOSE_HEAP_H
#define INTERPOSE_HEAP_H

#include <stdint.h>

/* Does nothing; stands beside the constructor, in init.c. */
void
cpprof__init(void);

/* Make the tables and begin to sample at the rate that was set. Not enough
 * memory: nothing is sampled. */
void
cpprof__heap_start(void);

/* Follow mappings from when that is asked for. */
void
cpprof__maps_start(void);

/* Learn which library is the allocator: before anything is counted. */
void
cpprof__find_allocator(void);

/* Where our malloc begins. */
uintptr_t
cpprof__our_malloc(void);

#endif
