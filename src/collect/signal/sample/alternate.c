/* SPDX-License-Identifier: MIT */
/*
 * Knows programs in which our signal may use no alternate stack (alternate.h).
 *
 * A table has a word for each of the stacks: 32 bits of its address, and the
 * thread. Another stack at the same place of the table puts it out, and then
 * two threads that share one are found by their next ticks.
 */
#include "collect/signal/sample/alternate.h"

#include "arch/atomic.h"
#include "arch/kernel.h"
#include "collect/signal/sample/handler.h"
#include "collect/signal/sample/sampler.h"

#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

/* As the kernel has it; libc's sigaction() refuses this signal. */
struct kernel_action {
    void (*handler)(int signo, siginfo_t *info, void *context);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

#define N_STACKS 256u

static bool is_left;
static uint64_t owners[N_STACKS];
static __thread int32_t own_tid;

static long
action_of(int signo, const struct kernel_action *action,
          struct kernel_action *old)
{
    return cpprof__syscall(SYS_rt_sigaction, signo, (long)action, (long)old,
                           sizeof old->mask, 0, 0);
}

bool
cpprof__alternate_is_left(void)
{
    return load_acquire(&is_left);
}

void
cpprof__alternate_leave(void)
{
    struct kernel_action now;

    store_release(&is_left, true);
    if (action_of(CPPROF__SIGNAL, NULL, &now) ||
        now.handler != cpprof__on_signal)
        return;
    now.flags &= ~(unsigned long)SA_ONSTACK;
    action_of(CPPROF__SIGNAL, &now, NULL);
}

/* ---- coroutines -------------------------------------------------------- */

#define BIT(signo) (1ull << ((signo)-1))

/* Signals that come of what a thread does, for which alternate stacks are
 * usually there. Who blocks one of them blocks all. */
#define OF_FAULTS (BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGFPE))

static bool
makes_coroutine(void)
{
    uint64_t blocked = 0;
    int signo;

    if (cpprof__syscall(SYS_rt_sigprocmask, SIG_SETMASK, 0, (long)&blocked,
                        sizeof blocked, 0, 0) ||
        blocked & OF_FAULTS)
        return false;
    for (; blocked; blocked &= blocked - 1) {
        struct kernel_action action;

        signo = __builtin_ctzll(blocked) + 1;
        if (signo != CPPROF__SIGNAL && !action_of(signo, NULL, &action) &&
            action.handler != (void *)SIG_DFL &&
            action.handler != (void *)SIG_IGN && action.flags & SA_ONSTACK)
            return true;
    }
    return false;
}

/* ---- shared stacks ----------------------------------------------------- */

static uint64_t *
owner_of(const void *stack)
{
    uint64_t mixed = (uint64_t)(uintptr_t)stack * 0x9e3779b97f4a7c15u;

    return &owners[mixed >> 56];
}

static uint64_t
word_of(const void *stack, int32_t tid)
{
    return (uint64_t)(uintptr_t)stack >> 4 << 32 | (uint32_t)tid;
}

static int32_t
this_tid(void)
{
    return (int32_t)cpprof__syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

static bool
lives(int32_t tid)
{
    long pid = cpprof__syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);

    return !cpprof__syscall(SYS_tgkill, pid, tid, 0, 0, 0, 0);
}

/* A thread that was joined may be there for a moment yet. */
static bool
stays(int32_t tid)
{
    const struct timespec pause = {0, 1000000};

    if (!lives(tid))
        return false;
    cpprof__syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (long)&pause, 0, 0,
                    0);
    return lives(tid);
}

static bool
is_shared(const void *stack, int32_t tid, bool (*other_is_there)(int32_t tid))
{
    uint64_t *owner = owner_of(stack), mine = word_of(stack, tid);
    uint64_t other = load_relaxed(owner);

    if (other == mine)
        return false;
    store_relaxed(owner, mine);
    return (other ^ mine) >> 32 == 0 && (int32_t)other &&
           other_is_there((int32_t)other);
}

void
cpprof__alternate_before(const void *stack, const void *had)
{
    uint64_t mine;

    own_tid = this_tid();
    mine = word_of(had, own_tid);
    if (had && had != stack)
        cas_acq_rel(owner_of(had), &mine, 0u);
    if (stack && !cpprof__alternate_is_left() &&
        (makes_coroutine() || is_shared(stack, own_tid, stays)))
        cpprof__alternate_leave();
}

/* Runtimes that set stacks by the bare system call, as Go's, hand one from
 * thread to thread, and need theirs. Go interrupts its threads by SIGURG, which
 * hardly anybody else handles. */
static bool
hands_stacks_on(void)
{
    struct kernel_action action;

    return !action_of(SIGURG, NULL, &action) &&
           action.handler != (void *)SIG_DFL &&
           action.handler != (void *)SIG_IGN && action.flags & SA_ONSTACK;
}

void
cpprof__alternate_note(const stack_t *stack)
{
    if (stack->ss_flags & SS_DISABLE || !stack->ss_size ||
        cpprof__alternate_is_left())
        return;
    if (!own_tid)
        own_tid = this_tid();
    if (is_shared(stack->ss_sp, own_tid, lives) && !hands_stacks_on())
        cpprof__alternate_leave();
}
