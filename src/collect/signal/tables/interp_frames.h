/* SPDX-License-Identifier: MIT */
/*
 * How script frames get into a native stack. Samplers and hooks of malloc call
 * these operations, and src/vm implements them: it knows the run loops and the
 * script that a thread runs. NULL: there is no interpreter.
 */
#ifndef COLLECT_SIGNAL_INTERP_FRAMES_H
#define COLLECT_SIGNAL_INTERP_FRAMES_H

#include "arch/atomic.h"
#include "collect/signal/unwind/unwind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cpprof__interp_result {
    CPPROF__INTERP_NONE,   /* no script runs here; the stack is unchanged */
    CPPROF__INTERP_MERGED, /* the stack has the frames of the script in it */
    CPPROF__INTERP_LATER,  /* only possible at a safepoint; see .defer */
};

/* Receives a deferred stack. */
struct cpprof__deferred_sink {
    /*
     * May change pcs, which has room for two more. Values of the same stack,
     * cookie and sink may have been added up. is_own: the calling thread is the
     * one that was sampled. Safety: AS.
     */
    void (*take)(uint64_t cookie, uint64_t value, uintptr_t *pcs, size_t n,
                 enum cpprof__unwind_end end, bool is_own);
};

/* A stack to be deferred. */
struct cpprof__deferred_stack {
    const struct cpprof__deferred_sink *sink;
    uint64_t cookie;
    uint64_t value;
    const uintptr_t *pcs;
    size_t n;
    enum cpprof__unwind_end end;
};

struct cpprof__interp_ops {
    /*
     * Merge script frames into the stack of the calling thread, which is leaf
     * first and has room for max; if it is truncated, *end says so. In a
     * handler only some interpreters can be asked; in an allocation all can.
     * Safety: AS.
     */
    enum cpprof__interp_result (*merge)(uintptr_t *pcs, size_t *n, size_t max,
                                        enum cpprof__unwind_end *end,
                                        bool is_handler);
    /* After CPPROF__INTERP_LATER, in the handler: copy the stack, and give it
     * to the sink with its script frames soon, on the same thread. False: there
     * is no room, so use it as it is. Safety: AS. */
    bool (*defer)(const struct cpprof__deferred_stack *stack);
    /* Give all deferred stacks to their sinks: those of the calling thread with
     * script frames, those of other threads as they are. Safety: MT. Not AS. */
    void (*flush)(void);
    /* As merge, for another thread that sleeps. If it wakes up meanwhile the
     * result is meaningless. Not in handlers. */
    enum cpprof__interp_result (*merge_blocked)(int32_t tid, uintptr_t *pcs,
                                                size_t *n, size_t max,
                                                enum cpprof__unwind_end *end);
    /* The calling thread has jumped out of any of the above, or of all. */
    void (*abandoned)(void);
};

#pragma GCC visibility push(hidden)
extern const struct cpprof__interp_ops *cpprof__interp_ops;
#pragma GCC visibility pop

/* Give deferred stacks to their sinks before counts are read. Safety: MT. Not
 * AS. */
static inline void
cpprof__interp_flush(void)
{
    const struct cpprof__interp_ops *interp = load_acquire(&cpprof__interp_ops);

    if (interp)
        interp->flush();
}

/* Safety: AS. */
static inline void
cpprof__interp_abandoned(void)
{
    const struct cpprof__interp_ops *interp = load_acquire(&cpprof__interp_ops);

    if (interp)
        interp->abandoned();
}

#endif
