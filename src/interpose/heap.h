/* SPDX-License-Identifier: MIT */
/* The heap profiler's first step. */
#ifndef INTERPOSE_HEAP_H
#define INTERPOSE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

/* Does nothing; stands beside the constructor, in init.c. */
void
cpprof__init(void);

/* Make the tables and begin to sample at the rate that was set. Not enough
 * memory: nothing is sampled. */
void
cpprof__heap_start(void);

/* Modules call our names although another's stand in front (src/attach), from
 * now on, or no more: the names follow the rate. */
void
cpprof__heap_patched(bool on);

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
