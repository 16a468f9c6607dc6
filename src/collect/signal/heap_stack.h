/* SPDX-License-Identifier: MIT */
/*
 * The stack of an allocation, as a number. What the walk needs, some 5 KiB, is
 * not put on the program's stack, which may be small: it lies in one of a few
 * places, taken for that time.
 */
#ifndef COLLECT_SIGNAL_HEAP_STACK_H
#define COLLECT_SIGNAL_HEAP_STACK_H

#include "collect/signal/heap.h"

#include <stdint.h>

#define CPPROF__HEAP_DEPTH 128

/* Threads that walk at the same time; who finds no place loses its sample.
 * 1.3 MiB, of which what is never used is never touched. */
#define CPPROF__HEAP_PLACES 256

#pragma GCC visibility push(hidden)
/* The main thread's stack, known to be readable for any thread whose stack
 * pointer is in it; 0, 0: not known. Set before the tables are made. */
extern uintptr_t cpprof__heap_main_lo;
extern uintptr_t cpprof__heap_main_hi;
#pragma GCC visibility pop

/* The stack of the caller, without leading frames of CPPROF__HOOK; 0: there
 * is no room. To be called from such a function. Safety: AS. */
uint32_t
cpprof__heap_walk(struct cpprof__tree *tree);

/* Give back what other threads hold, in a child made by fork. */
void
cpprof__heap_walk_forked(void);

#endif
