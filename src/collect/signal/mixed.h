/* SPDX-License-Identifier: MIT */
/*
 * Where a native stack becomes one of a script and its libraries. The samplers
 * and the hooks of malloc ask, src/vm answers: it knows what is a run loop and
 * which script the calling thread runs. NULL: no interpreter is there.
 */
#ifndef COLLECT_SIGNAL_MIXED_H
#define COLLECT_SIGNAL_MIXED_H

#include "collect/signal/unwind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cpprof__mixed {
    CPPROF__MIXED_NOT,   /* no script runs here: the stack is as it was */
    CPPROF__MIXED_DONE,  /* the stack has the frames of the script in it */
    CPPROF__MIXED_LATER, /* only at a safepoint; see .later */
};

/* Who gets a stack that was put off. Safety of the functions: AS. */
struct cpprof__mixed_sink {
    /* pcs may be changed, and has room for two more. */
    void (*take)(uint64_t weight, uint64_t cookie, uintptr_t *pcs, size_t n,
                 enum cpprof__unwind_end end);
};

struct cpprof__mixer {
    /*
     * The stack of the calling thread, leaf first, with room for max. May the
     * script be asked at this moment? In a handler (is_handler) only some can;
     * an allocation is always such a moment.
     */
    enum cpprof__mixed (*mix)(uintptr_t *pcs, size_t *n, size_t max,
                              bool is_handler);
    /* After MIXED_LATER, in the handler: keep the stack, and give it to the
     * sink, mixed, on the same thread soon. False: there is no room, it is to
     * go as it is. */
    bool (*put_off)(const struct cpprof__mixed_sink *sink, uint64_t weight,
                    uint64_t cookie, const uintptr_t *pcs, size_t n,
                    enum cpprof__unwind_end end);
};

#pragma GCC visibility push(hidden)
extern const struct cpprof__mixer *cpprof__mixer;
#pragma GCC visibility pop

#endif
