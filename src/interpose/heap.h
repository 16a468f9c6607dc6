/* SPDX-License-Identifier: MIT */
/* The heap profiler's first step, and what it does around dlclose and fork. */
#ifndef INTERPOSE_HEAP_H
#define INTERPOSE_HEAP_H

/* Does nothing; stands beside the constructor, in init.c. */
void
cpprof__init(void);

/* Make the tables and begin to sample at the rate that was set. Not enough
 * memory: nothing is sampled. */
void
cpprof__heap_start(void);

/* Code went: operators that were in it are to be found anew. */
void
cpprof__heap_after_unload(void);

#endif
