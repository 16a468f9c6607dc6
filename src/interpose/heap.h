/* SPDX-License-Identifier: MIT */
/*
 * The heap profiler's first step: which names count, and C++'s operators.
 *
 * This library exports no operator new or delete. Those of the standard
 * libraries, and most that programs bring, call malloc, and are counted there.
 * An allocator's own (tcmalloc's, jemalloc's, mimalloc's) do not: when the
 * first heap profile begins they are led to ours, which stand between
 * (collect/entries/entries.h), and are jumps while none is on. So a program
 * without a heap profile has its own operators, each plug-in has those that it
 * was bound to, and nobody looks for any.
 */
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

/* Modules call our names although another's stand in front (src/attach): from
 * now on the names follow the rate; or no more. False: operators of C++ lead to
 * us still, and from there to where they led. */
void
cpprof__heap_patch(void);
bool
cpprof__heap_put_back(void);

/* Of operators: the heap profile is on, or not; is_late: the program's code
 * runs already. Waits for who is in the loader. */
void
cpprof__operators_follow(bool counts, bool is_late);

/* Everything leads where it led before; false: not everything does yet. */
bool
cpprof__operators_put_back(void);

/* Follow mappings from when that is asked for. */
void
cpprof__maps_start(void);

/* Learn which library is the allocator: before anything is counted. */
void
cpprof__find_allocator(void);

/* While it is on, what libc allocates in this thread to make another is lent,
 * and not asked of an allocator that may be half-done. Only as the process
 * ends: what is lent does not come back. Safety: AS. */
void
cpprof__lend_at_end(bool on);

/* Where our malloc begins. */
uintptr_t
cpprof__our_malloc(void);

#endif
