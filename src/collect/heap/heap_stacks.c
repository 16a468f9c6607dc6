/* SPDX-License-Identifier: MIT */
#include "collect/heap/heap_stacks.h"

#include "arch/place.h"
#include "arch/regs.h"
#include "collect/signal/heap/hook_stack.h"

#include <sys/auxv.h>
#include <sys/resource.h>

/* No more of the main thread's stack is assumed to be readable: where the
 * kernel chooses an address, it stays out of the 128 MiB below the stack's end.
 */
#define MAIN_STACK_MAX ((uintptr_t)64 << 20)

/* What the C library uses of a thread's stack, and the guard page. */
#define MARGIN ((size_t)16 * 4096)

/* The kernel puts its random bytes above everything that is ever pushed, and
 * what lies between the stack pointer and them is one mapping. */
CPPROF__FIRST_STEP void
cpprof__main_stack_find(void)
{
    uintptr_t hi = getauxval(AT_RANDOM) & ~(uintptr_t)7;
    uintptr_t room = MAIN_STACK_MAX;
    struct rlimit limit;

    if (!getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur < room)
        room = limit.rlim_cur;
    if (hi <= room)
        return;
    cpprof__main_stack_lo = hi - room;
    cpprof__main_stack_hi = hi;
}

/* The thread pointer stands near the top of a thread's stack, so all between
 * the two is its own. */
void
cpprof__thread_stack_known(size_t stack_bytes)
{
    uintptr_t tp = cpprof__thread_self();
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    struct cpprof__hook_self *self = &cpprof__hook_self;

    if (stack_bytes <= 2 * MARGIN || here >= tp || tp - here > stack_bytes)
        return;
    self->stack_lo = tp - stack_bytes + MARGIN;
    self->stack_hi = tp;
}
