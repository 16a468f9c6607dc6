/* SPDX-License-Identifier: MIT */
/*
 * The stack of an allocation, as a number. The walk needs some 9 KiB. The
 * program's stack may be too small for that, so one of a few buffers is taken
 * for the walk.
 *
 * If a script runs, the stack gets its frames, too (tables/interp_frames.h),
 * provided that the caller is_at_rest: it is not in a handler, which the walk
 * finds out, and it has freed nothing that the thread's interpreter may still
 * read. An interpreter that can be asked in a handler is always asked.
 */
#ifndef COLLECT_SIGNAL_HOOK_STACK_H
#define COLLECT_SIGNAL_HOOK_STACK_H

#include "collect/signal/heap/exempt.h"
#include "collect/signal/tables/stack_tree.h"
#include "collect/signal/unwind/unwind.h"

#include <stdint.h>

#define CPPROF__HEAP_DEPTH 128

/* Frames of hooks that may stand before those of the program, and of the
 * program's that may be skipped. */
#define CPPROF__HEAP_HOOKS 8
#define CPPROF__HOOK_SKIP  32

/* Tunable: threads that walk at the same time; one that finds no buffer loses
 * its sample. 2.2 MiB in all, touched only as they are used. */
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

/* The same for a function that was called from within another hook's real call:
 * the stack begins with the caller of that hook. Without such a hook the stack
 * is the frame "[lost samples]". */
uint32_t
cpprof__hook_walk_outside(struct cpprof__tree *tree);

/* What can be read without asking the kernel: from sp up to the end of the
 * calling thread's stack that it is in. Safety: AS. */
void
cpprof__hook_see_stack(struct cpprof__stack_view *view, uintptr_t sp);

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
 * Remove hooks from a stack that was walked elsewhere, unless nothing else is
 * in it; returns the number of frames left. If leaf is not 0, it replaces what
 * the innermost hook has called, so that a wait has the same frames while it
 * lasts and when it is over. Safety: AS.
 */
size_t
cpprof__drop_hooks(uintptr_t *pcs, size_t n, uintptr_t leaf, bool *has_hook);

/* Give back what other threads hold, in a child made by fork. */
void
cpprof__hook_walk_forked(void);

/* Memory to walk in, and for the tree, at the first call; false: there is none,
 * and every walk fails. Safety: AS, lock-free. */
bool
cpprof__hook_walk_reserve(struct cpprof__tree *tree);

/* Give back what this thread holds for a walk that it will never end. */
void
cpprof__hook_walk_abandoned(void);

#endif
