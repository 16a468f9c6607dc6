/* SPDX-License-Identifier: MIT */
/*
 * Where a native stack becomes one of a script and its libraries. The samplers
 * and the hooks of malloc ask, src/vm answers: it knows what is a run loop and
 * which script the calling thread runs. NULL: no interpreter is there.
 */
#ifndef COLLECT_SIGNAL_INTERP_FRAMES_H
#define COLLECT_SIGNAL_INTERP_FRAMES_H

#include "arch/atomic.h"
#include "collect/signal/unwind/unwind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cpprof__interp_result {
    CPPROF__INTERP_NONE,   /* no script runs here: the stack is as it was */
    CPPROF__INTERP_MERGED, /* the stack has the frames of the script in it */
    CPPROF__INTERP_LATER,  /* only at a safepoint; see .later */
};

/* Who gets a stack that was put off. */
struct cpprof__deferred_sink {
    /*
     * pcs may be changed, and has room for two more. Values of the same stack,
     * cookie and sink may have been added up. is_own: the calling thread is the
     * one that was sampled. Safety: AS.
     */
    void (*take)(uint64_t cookie, uint64_t value, uintptr_t *pcs, size_t n,
                 enum cpprof__unwind_end end, bool is_own);
};

/* A stack to be put off. */
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
     * The stack of the calling thread, leaf first, with room for max; what is
     * cut off sets *end. In a handler only some interpreters can be asked; an
     * allocation is always a moment for it. Safety: AS.
     */
    enum cpprof__interp_result (*merge)(uintptr_t *pcs, size_t *n, size_t max,
                                        enum cpprof__unwind_end *end,
                                        bool is_handler);
    /* After MIXED_LATER, in the handler: copy it, and give it to the sink,
     * mixed, on the same thread soon. False: there is no room, it is to go as
     * it is. Safety: AS. */
    bool (*defer)(const struct cpprof__deferred_stack *stack);
    /* Give all that was put off to its sinks: of the calling thread, mixed; of
     * others, as it is. Safety: MT. Not AS. */
    void (*flush)(void);
    /* As mix, of another thread, which sleeps, or wakes up meanwhile: then it
     * is anything. Not in handlers. */
    enum cpprof__interp_result (*merge_blocked)(int32_t tid, uintptr_t *pcs,
                                                size_t *n, size_t max,
                                                enum cpprof__unwind_end *end);
    /* The calling thread has jumped out of any of the above, or of all. */
    void (*abandoned)(void);
};

#pragma GCC visibility push(hidden)
extern const struct cpprof__interp_ops *cpprof__interp_ops;
#pragma GCC visibility pop

/* Before what was sampled so far is counted up. Safety: MT. Not AS. */
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
