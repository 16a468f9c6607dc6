/* SPDX-License-Identifier: MIT */
/*
 * What the sampling of CPU time has at hand in handlers and beside them: the
 * session's state, who sent a signal, what is due, and the way into the ring.
 */
#include "collect/signal/sample/sampler.h"

#include "arch/atomic.h"
#include "arch/libc.h"
#include "arch/place.h"
#include "arch/regs.h"

#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

struct cpprof__sampler cpprof__sampler CPPROF__AT_START;

uint64_t
cpprof__ticks_due(const struct cpprof__thread *t, uint64_t cpu_ns,
                  uint64_t period_ns)
{
    uint64_t used = cpu_ns - t->base_ns;

    if (cpu_ns < t->base_ns || used < t->phase_ns)
        return 0;
    return 1 + (used - t->phase_ns) / period_ns;
}

void
cpprof__ring_wake(struct cpprof__ring *ring)
{
    if (!swap_acq_rel(&ring->wake, 1))
        CPPROF__BARE_SYSCALL(SYS_futex, (long)&ring->wake, FUTEX_WAKE, 1, 0, 0,
                             0);
}

static bool
carries(const siginfo_t *info, uint64_t magic)
{
    return info->si_code == SI_TIMER &&
           (uint64_t)info->si_value.sival_ptr >> 40 == magic;
}

enum cpprof__signal_source
cpprof__signal_source(const siginfo_t *info)
{
    if (carries(info, CPPROF__TIMER_MAGIC))
        return CPPROF__FROM_TIMER;
    if (carries(info, CPPROF__SCRIPT_MAGIC))
        return CPPROF__FROM_SCRIPT;
    if (carries(info, CPPROF__QUESTION_MAGIC))
        return CPPROF__FROM_QUESTION;
    if (info->si_code >= POLL_IN && info->si_code <= POLL_HUP &&
        load_relaxed(&cpprof__sampler.uses_perf))
        return CPPROF__FROM_PERF;
    return CPPROF__FROM_OTHERS;
}

/* What a walk and the handler above it need of a stack: tests/unit/
 * test_unwind_stack_use.c holds the walk below 1 KiB. */
#define ROOM_BYTES 3072u

static bool
has_room(const stack_t *other)
{
    uintptr_t used =
        (uintptr_t)__builtin_frame_address(0) - (uintptr_t)other->ss_sp;

    return other->ss_flags & SS_DISABLE || used >= other->ss_size ||
           used >= ROOM_BYTES;
}

#define SIGSYS_BIT (1ull << (SIGSYS - 1))

static bool
blocks_sigsys(const ucontext_t *context)
{
    uint64_t mask;

    memcpy(&mask, &context->uc_sigmask, sizeof mask);
    return mask & SIGSYS_BIT;
}

/* False: the kernel does not say it. */
static bool
handler_of(int number, uintptr_t *handler)
{
    struct {
        uintptr_t handler;
        uint64_t others[3];
    } action = {0, {0}};

    if (cpprof__syscall(SYS_rt_sigaction, number, 0, (long)&action,
                        sizeof(uint64_t), 0, 0))
        return false;
    *handler = action.handler;
    return true;
}

/* Where nobody handles SIGSYS, nobody answers calls. */
static bool
is_handled(void)
{
    uintptr_t handler;

    return !handler_of(SIGSYS, &handler) ||
           (handler != (uintptr_t)SIG_DFL && handler != (uintptr_t)SIG_IGN);
}

/* The code that a signal of the program's interrupted, if the handler has done
 * nothing yet, not even what SIGSYS asks of it; else NULL. Registers alone do
 * not say that: a leaf may leave those as they are to its end. */
static const ucontext_t *
before_handler(const ucontext_t *at)
{
    const uint64_t sigsys = SIGSYS_BIT;
    struct cpprof__regs regs;
    const ucontext_t *before;
    uintptr_t handler;
    int number;

    cpprof__regs_from_ucontext(&regs, at);
    before = cpprof__begun_handler(&regs, &number);
    return before && handler_of(number, &handler) && handler == regs.pc &&
                   !blocks_sigsys(before) &&
                   !cpprof__syscall(SYS_rt_sigprocmask, SIG_UNBLOCK,
                                    (long)&sigsys, 0, sizeof sigsys, 0, 0)
               ? before
               : NULL;
}

enum cpprof__own_frame
cpprof__signal_no_walk(const void **context)
{
    const ucontext_t *at = *context;

    if (!has_room(&at->uc_stack))
        return CPPROF__FRAME_NO_ROOM;
    if (blocks_sigsys(at) && is_handled())
        at = before_handler(at);
    if (!at)
        return CPPROF__FRAME_NO_CALLS;
    *context = at;
    return 0;
}

uintptr_t
cpprof__sampler_labels(void)
{
    return load_relaxed(&cpprof__sampler.labels)
               ? (uintptr_t)cpprof__self.labels
               : 0;
}

void
cpprof__sampler_push(struct cpprof__ring *ring,
                     const struct cpprof__ring_head *head, const uintptr_t *pcs,
                     size_t n)
{
    cpprof__ring_push(ring, head, pcs, n);
    if (cpprof__ring_is_filling(ring))
        cpprof__ring_wake(ring);
}

void
cpprof__sampler_charge(const struct cpprof__thread *t, uint32_t weight,
                       uintptr_t own_frame)
{
    const struct cpprof__ring_head head = {weight, 0, t->tid,
                                           cpprof__sampler_labels()};
    uintptr_t pcs[2] = {own_frame, t->start};
    struct cpprof__ring *ring;

    __atomic_add_fetch(&cpprof__sampler.n_inside, 1, __ATOMIC_SEQ_CST);
    ring = __atomic_load_n(&cpprof__sampler.ring, __ATOMIC_SEQ_CST);
    if (ring)
        cpprof__sampler_push(ring, &head, pcs, t->start ? 2 : 1);
    __atomic_sub_fetch(&cpprof__sampler.n_inside, 1, __ATOMIC_SEQ_CST);
}
