/* SPDX-License-Identifier: MIT */
/*
 * The stack of an allocation, as a number. What the walk needs, some 9 KiB, is
 * not put on the program's stack, which may be small: it lies in one of a few
 * buffers, taken for that time.
 *
 * Where scripts run the stack has their frames, too (signal/mixed.h), if the
 * caller is_at_rest: it is not in a handler, which the walk finds out, and has
 * freed nothing that the interpreter of the calling thread may still look at.
 * An interpreter that can be asked in a handler is asked always.
 */
#ifndef COLLECT_SIGNAL_HOOK_STACK_H
#define COLLECT_SIGNAL_HOOK_STACK_H

#include "collect/signal/heap/heap.h"
#include "collect/signal/unwind/unwind.h"

#include <stdint.h>

#define CPPROF__HEAP_DEPTH 128

/* Frames of hooks that may stand before those of the program, and of the
 * program's that may be skipped. */
#define CPPROF__HEAP_HOOKS 8
#define CPPROF__HOOK_SKIP  32

/* Threads that walk at the same time; who finds no buffer loses its sample.
 * 2.2 MiB, of which what is never used is never touched. */
#define CPPROF__HOOK_BUFFERS 256

#pragma GCC visibility push(hidden)
/* The main thread's stack, known to be readable for any thread whose stack
 * pointer is in it; 0, 0: not known. Set before the tables are made. */
extern uintptr_t cpprof__main_stack_lo;
extern uintptr_t cpprof__main_stack_hi;
#pragma GCC visibility pop

/* The stack of the caller, without leading frames of CPPROF__HOOK; 0: there
 * is no room. To be called from such a function. Safety: AS. */
uint32_t
cpprof__hook_walk(struct cpprof__tree *tree, bool is_at_rest);

/* The same without skip more native frames, at most CPPROF__HOOK_SKIP. Of a
 * stack that has no others there is the frame "[lost samples]". */
uint32_t
cpprof__hook_walk_skip(struct cpprof__tree *tree, unsigned skip,
                       bool is_at_rest);

/* The same of a function that was called, however, by what a hook has called:
 * the stack of whoever called that. Of a stack without such a hook there is the
 * frame "[lost samples]". */
uint32_t
cpprof__hook_walk_outside(struct cpprof__tree *tree);

/* A stack that was walked, here. */
struct cpprof__heap_stack {
    uintptr_t *pcs;
    size_t n;
    size_t max; /* pcs has room for one more */
    enum cpprof__unwind_end end;
    bool is_at_rest;
};
uint32_t
cpprof__hook_stack_add(struct cpprof__tree *tree,
                       struct cpprof__heap_stack *stack, size_t skip);

/*
 * Leave out hooks wherever they are in a stack that others walked, unless
 * nothing else is in it; returns how many frames there are then. What the
 * innermost of them has called becomes leaf, unless that is 0: so the same wait
 * has the same frames whether it goes on or is over. Safety: AS.
 */
size_t
cpprof__drop_hooks(uintptr_t *pcs, size_t n, uintptr_t leaf, bool *has_hook);

/* Give back what other threads hold, in a child made by fork. */
void
cpprof__hook_walk_forked(void);

/* Memory to walk in, and for the tree, at the first call; false: there is none,
 * and every walk fails. Safety: AS, lock-free. */
bool
cpprof__heap_walk_reserve(struct cpprof__tree *tree);

/* Give back what this thread holds for a walk that it will never end. */
void
cpprof__hook_walk_abandoned(void);

#endif
