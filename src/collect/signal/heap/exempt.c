/* SPDX-License-Identifier: MIT */
/*
 * Finds out that a thread has left its exempt frame without saying so. That
 * frame is certainly gone if the same stack is now in use at the same height or
 * above, or if its return address was overwritten. So both frames must lie on
 * the thread's own stack, and no alternate stack may be in use, because that
 * could be anywhere, even in a variable of a caller. A frame on the alternate
 * stack is gone when that stack is not in use. Nothing is known of other stacks
 * (coroutines, threads made without our knowledge), so a thread may stay exempt
 * there. Invariant: a frame that still exists is never taken for gone.
 *
 * Source: sigaltstack(2).
 */
#include "collect/signal/heap/exempt.h"

#include "arch/place.h"
#include "collect/signal/heap/hook_stack.h"
#include "collect/signal/tables/interp_frames.h"

#include <signal.h>
#include <sys/syscall.h>

__thread struct cpprof__hook_self cpprof__hook_self;

/* A smaller value is no address: somebody raised it from 0 without a frame. */
#define FIRST_FRAME 4096

/* Frames are aligned to more. Low bits mean that it was raised since, so the
 * frame still exists. */
#define RAISED_MASK ((uintptr_t)7)

static bool
is_in(uintptr_t at, uintptr_t lo, uintptr_t hi)
{
    return at - lo < hi - lo;
}

/* Is it a caller of this frame? */
static bool
is_above(uintptr_t exempt, uintptr_t frame)
{
    return exempt > frame &&
           *cpprof__heap_return_of(exempt) == cpprof__hook_self.exempt_return;
}

CPPROF__FIRST_STEP static bool
is_left(uintptr_t exempt, uintptr_t frame, uintptr_t lo, uintptr_t hi)
{
    bool same_stack = is_in(exempt, lo, hi);
    stack_t other = {.ss_flags = SS_ONSTACK};

    if (!is_in(frame, lo, hi) || (same_stack && is_above(exempt, frame)))
        return false;
    cpprof__syscall(SYS_sigaltstack, 0, (long)&other, 0, 0, 0, 0);
    if (other.ss_flags & SS_ONSTACK)
        return false;
    return same_stack || is_in(exempt, (uintptr_t)other.ss_sp,
                               (uintptr_t)other.ss_sp + other.ss_size);
}

CPPROF__FIRST_STEP bool
cpprof__exempt_was_abandoned(uintptr_t frame)
{
    struct cpprof__hook_self *self = &cpprof__hook_self;
    uintptr_t exempt = self->exempt;

    if (exempt < FIRST_FRAME || exempt & RAISED_MASK)
        return false;
    if (!is_left(exempt, frame, self->stack_lo, self->stack_hi) &&
        !is_left(exempt, frame, cpprof__main_stack_lo, cpprof__main_stack_hi))
        return false;
    self->exempt = 0;
    cpprof__hook_walk_abandoned();
    cpprof__interp_abandoned();
    return true;
}
