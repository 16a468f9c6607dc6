/* SPDX-License-Identifier: MIT */
/*
 * A frame that made its thread exempt is gone for certain when the same stack
 * is in use as high up as it was, or higher; or when what stands where it kept
 * its return address is another address now. So both have to be known to lie on
 * the thread's own stack, and no alternate stack may be in use, which could be
 * anywhere, even in a variable of a function further up. A frame on the
 * alternate stack is gone when that is not in use. Of other stacks (coroutines,
 * threads that were made without our knowledge) nothing is known: there a
 * thread may stay exempt. Nothing is ever taken for left that was not.
 *
 * Source: sigaltstack(2).
 */
#include "arch/regs.h"
#include "collect/signal/heap/heap.h"
#include "collect/signal/heap/hook_stack.h"
#include "collect/signal/tables/interp_frames.h"

#include <signal.h>
#include <sys/syscall.h>

/* Less is no address, but was raised from 0 by who did not give a frame. */
#define FIRST_FRAME 4096

/* Frames are aligned to more; it was raised meanwhile, and cannot be left. */
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

static bool
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

bool
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
