/* SPDX-License-Identifier: MIT */
/*
 * What a thread knows of itself inside hooks, and whether it is exempt: what it
 * allocates then is ours, and is in no profile.
 */
#ifndef COLLECT_SIGNAL_EXEMPT_H
#define COLLECT_SIGNAL_EXEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The state of the running thread. */
struct cpprof__hook_self {
    int64_t left; /* floor + bytes to the next sample */
    /* Not 0: the thread is exempt and nothing is sampled. The value is the
     * frame that made it exempt (runtime/exempt.h), plus 1 for each time it was
     * raised since. */
    uintptr_t exempt;
    uintptr_t exempt_return; /* where that frame returns to */
    int64_t floor;           /* for which .left was drawn */
    bool at_point;   /* at .left is a sample; else it is drawn there anew */
    int64_t rate;    /* with which it was drawn */
    uint64_t random; /* 0: not seeded */
    /* The thread's stack: readable from the stack pointer up as long as the
     * thread lives; 0, 0: not known. See threads/stacks.h. */
    uintptr_t stack_lo;
    uintptr_t stack_hi;
};

#pragma GCC visibility push(hidden)
extern __thread struct cpprof__hook_self cpprof__hook_self;
#pragma GCC visibility pop

/*
 * On every function that is between the program's call and the walk of the
 * stack: leading frames in this section are ours, and are not in the stack. Not
 * to be used on what may be inlined elsewhere.
 */
#define CPPROF__HOOK __attribute__((section("cpprof_hooks"), noinline))

/*
 * Has the thread left the exempt frame without its end, by siglongjmp out of a
 * handler, an exception or a cancellation? Then the exemption ends, and what
 * the frame held is released. `frame` is that of the caller.
 */
bool
cpprof__exempt_was_abandoned(uintptr_t frame);

/* Is the thread exempt? */
static inline bool
cpprof__is_exempt(uintptr_t frame)
{
    return cpprof__hook_self.exempt && !cpprof__exempt_was_abandoned(frame);
}

/* Where a frame returns to is beside the address of its caller's frame, on
 * each of our architectures. */
static inline uintptr_t *
cpprof__heap_return_of(uintptr_t frame)
{
    return (uintptr_t *)frame + 1;
}

/* Linkers make an instruction that sets no flags of the addition that makes the
 * address of a thread-local variable, after which the sanitizer asks whether it
 * was 0: a false alarm, also where the function was put into its caller. */
#ifdef CPPROF_CHECKED
#define CPPROF__THREAD_LOCAL                                                   \
    static __attribute__((no_sanitize("null"), noinline, unused))
#else
#define CPPROF__THREAD_LOCAL static inline
#endif

/* What a thread was before it became exempt. */
struct cpprof__exempt {
    uintptr_t exempt;
    uintptr_t exempt_return;
};

/* A handler that comes in between, and is exempt itself for a while, leaves
 * both as they were. */
CPPROF__THREAD_LOCAL struct cpprof__exempt
cpprof__exempt_begin(uintptr_t frame)
{
    struct cpprof__hook_self *self = &cpprof__hook_self;
    struct cpprof__exempt before = {0, self->exempt_return};

    if (cpprof__is_exempt(frame)) {
        before.exempt = self->exempt;
        return before;
    }
    self->exempt_return = *cpprof__heap_return_of(frame);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->exempt = frame;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return before;
}

CPPROF__THREAD_LOCAL void
cpprof__exempt_end(struct cpprof__exempt *before)
{
    struct cpprof__hook_self *self = &cpprof__hook_self;

    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->exempt = before->exempt;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->exempt_return = before->exempt_return;
}

#endif
