/* SPDX-License-Identifier: MIT */
/*
 * What the program does with signals. Its own handler for the sampling signal
 * is accepted, reported back, and called for every signal that is not ours.
 * While a thread blocks the signal, or waits for it, none of ours is sent to it
 * (collect/signal/sample/pause.h).
 *
 * A handler may call all of these names: what is done here about masks takes no
 * lock and no memory. What changes masks otherwise is not seen: bare system
 * calls, handlers and their end, siglongjmp(), setcontext().
 *
 * Source: signal(2), sigprocmask(2), sigwaitinfo(2), sigset(3), sigvec(3).
 */
#include "collect/runtime/own_threads.h"
#include "collect/runtime/real.h"
#include "collect/signal/sample/pause.h"
#include "collect/signal/sample/sampler.h"
#include "collect/threads/action.h"
#include "interpose/take_over.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/time.h>

/* To take a deprecated name over is not to use it. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

TAKE_OVER(sigaction, int,
          (int signo, const struct sigaction *restrict action,
           struct sigaction *restrict old),
          (signo, action, old))

static int
sigaction_on(int signo, const struct sigaction *restrict action,
             struct sigaction *restrict old)
{
    return cpprof__action_swap(signo, action, old);
}

static sighandler_t
set_handler(int signo, sighandler_t handler, int flags)
{
    struct sigaction action = {.sa_flags = flags}, old;

    action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    if (!(flags & SA_NODEFER))
        sigaddset(&action.sa_mask, signo);
    return cpprof__action_swap(signo, &action, &old) ? SIG_ERR : old.sa_handler;
}

/* Other signals, and what is no handler, are libc's business: it knows what
 * siginterrupt() said. */
static bool
is_others(int signo, sighandler_t handler)
{
    return !cpprof__action_concerns(signo) || handler == SIG_ERR;
}

#define TAKE_OVER_SIGNAL(name)                                                 \
    TAKE_OVER(name, sighandler_t, (int signo, sighandler_t handler),           \
              (signo, handler))

TAKE_OVER_SIGNAL(signal)

static sighandler_t
signal_on(int signo, sighandler_t handler)
{
    if (is_others(signo, handler))
        return cpprof__real(signal)(signo, handler);
    return set_handler(signo, handler, SA_RESTART);
}

/* Declared by older standards only. */
sighandler_t
bsd_signal(int signo, sighandler_t handler);

TAKE_OVER_SIGNAL(bsd_signal)

static sighandler_t
bsd_signal_on(int signo, sighandler_t handler)
{
    return signal_on(signo, handler);
}

TAKE_OVER_SIGNAL(__sysv_signal)

static sighandler_t
__sysv_signal_on(int signo, sighandler_t handler)
{
    if (is_others(signo, handler))
        return cpprof__real(__sysv_signal)(signo, handler);
    return set_handler(signo, handler, (int)(SA_RESETHAND | SA_NODEFER));
}

TAKE_OVER_SIGNAL(sysv_signal)

static sighandler_t
sysv_signal_on(int signo, sighandler_t handler)
{
    return __sysv_signal_on(signo, handler);
}

TAKE_OVER_SIGNAL(sigset)

/* Source: sigset(3). SIG_HOLD blocks the signal and leaves the disposition. */
static sighandler_t
sigset_on(int signo, sighandler_t handler)
{
    sigset_t one, before;
    sighandler_t old;

    if (is_others(signo, handler))
        return cpprof__real(sigset)(signo, handler);
    sigemptyset(&one);
    sigaddset(&one, signo);
    if (handler == SIG_HOLD) {
        struct sigaction action;

        pthread_sigmask(SIG_BLOCK, &one, &before);
        cpprof__action_swap(signo, NULL, &action);
        return sigismember(&before, signo) == 1 ? SIG_HOLD : action.sa_handler;
    }
    old = set_handler(signo, handler, 0);
    pthread_sigmask(SIG_UNBLOCK, &one, &before);
    return sigismember(&before, signo) == 1 ? SIG_HOLD : old;
}

TAKE_OVER(sigignore, int, (int signo), (signo))

static int
sigignore_on(int signo)
{
    if (!cpprof__action_concerns(signo))
        return cpprof__real(sigignore)(signo);
    return set_handler(signo, SIG_IGN, 0) == SIG_ERR ? -1 : 0;
}

/* ---- masks ------------------------------------------------------------ */

typedef int
mask_call(int how, const sigset_t *set, sigset_t *old);

static bool
has_ours(const sigset_t *set)
{
    return set && sigismember(set, CPPROF__SIGNAL) == 1;
}

/* The mask as the thread sees it. */
static int
seen(int failed, sigset_t *old, bool was_lent)
{
    if (!failed && old && was_lent)
        sigaddset(old, CPPROF__SIGNAL);
    return failed;
}

static int
do_open(mask_call *real, int how, const sigset_t *set, sigset_t *old)
{
    bool was_lent = cpprof__self.is_lent;
    int failed;

    cpprof__self.is_lent = false;
    failed = real(how, set, old);
    cpprof__mask_opened();
    return seen(failed, old, was_lent);
}

static int
do_close(mask_call *real, int how, const sigset_t *set, sigset_t *old)
{
    sigset_t given = *set, before;
    bool ticked;
    int failed;

    if (cpprof__self.is_lent) { /* nothing changes */
        sigdelset(&given, CPPROF__SIGNAL);
        return seen(real(how, &given, old), old, true);
    }
    ticked = cpprof__mask_close();
    failed = real(how, &given, &before);
    if (failed)
        return failed;
    cpprof__mask_closed(ticked && has_ours(&before));
    if (old)
        *old = before;
    return 0;
}

static int
change(mask_call *real, int how, const sigset_t *set, sigset_t *old)
{
    if (cpprof__own_thread_is_this())
        return real(how, set, old);
    if (!cpprof__mask_is_ours())
        return seen(real(how, set, old), old, cpprof__self.is_lent);
    if (has_ours(set) && (how == SIG_BLOCK || how == SIG_SETMASK))
        return do_close(real, how, set, old);
    if (set && (has_ours(set) ? how == SIG_UNBLOCK : how == SIG_SETMASK))
        return do_open(real, how, set, old);
    return seen(real(how, set, old), old, cpprof__self.is_lent);
}

TAKE_OVER(pthread_sigmask, int, (int how, const sigset_t *set, sigset_t *old),
          (how, set, old))

static int
pthread_sigmask_on(int how, const sigset_t *set, sigset_t *old)
{
    return change(cpprof__real(pthread_sigmask), how, set, old);
}

TAKE_OVER(sigprocmask, int,
          (int how, const sigset_t *restrict set, sigset_t *restrict old),
          (how, set, old))

static int
sigprocmask_on(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
    return change(cpprof__real(sigprocmask), how, set, old);
}

/* ---- the process's timer ---------------------------------------------- */

TAKE_OVER(setitimer, int,
          (__itimer_which_t which, const struct itimerval *restrict timer,
           struct itimerval *restrict old),
          (which, timer, old))

static int
setitimer_on(__itimer_which_t which, const struct itimerval *restrict timer,
             struct itimerval *restrict old)
{
    if (which == ITIMER_PROF)
        cpprof__itimer_give_up();
    return cpprof__real(setitimer)(which, timer, old);
}

/* ---- older names ------------------------------------------------------ */

/* Signals 1 to 31, as bits. */
static int
change_bits(int how, int bits)
{
    sigset_t set, old;
    int i, before = 0;

    sigemptyset(&set);
    for (i = 0; i < 31; i++)
        if (bits >> i & 1)
            sigaddset(&set, i + 1);
    if (sigprocmask_on(how, &set, &old))
        return -1;
    for (i = 0; i < 31; i++)
        if (sigismember(&old, i + 1) == 1)
            before |= 1 << i;
    return before;
}

TAKE_OVER(sigblock, int, (int bits), (bits))

static int
sigblock_on(int bits)
{
    return change_bits(SIG_BLOCK, bits);
}

TAKE_OVER(sigsetmask, int, (int bits), (bits))

static int
sigsetmask_on(int bits)
{
    return change_bits(SIG_SETMASK, bits);
}

static int
change_one(int how, int signo)
{
    sigset_t one;

    sigemptyset(&one);
    sigaddset(&one, signo);
    return sigprocmask_on(how, &one, NULL);
}

TAKE_OVER(sighold, int, (int signo), (signo))

static int
sighold_on(int signo)
{
    return signo == CPPROF__SIGNAL ? change_one(SIG_BLOCK, signo)
                                   : cpprof__real(sighold)(signo);
}

TAKE_OVER(sigrelse, int, (int signo), (signo))

static int
sigrelse_on(int signo)
{
    return signo == CPPROF__SIGNAL ? change_one(SIG_UNBLOCK, signo)
                                   : cpprof__real(sigrelse)(signo);
}

/* ---- waiting for signals ---------------------------------------------- */

/* True: it is to be ended. */
static bool
begin_wait(const sigset_t *set)
{
    sigset_t mask;

    if (!has_ours(set) || cpprof__own_thread_is_this())
        return false;
    cpprof__mask_end_loan();
    if (cpprof__self.is_closed)
        return false;
    if (cpprof__mask_close()) {
        cpprof__real_sigmask(SIG_BLOCK, NULL, &mask);
        cpprof__mask_closed(has_ours(&mask));
    }
    return true;
}

static int
end_wait(bool was_begun, int result)
{
    if (was_begun)
        cpprof__mask_opened();
    return result;
}

TAKE_OVER(sigwait, int, (const sigset_t *restrict set, int *restrict signo),
          (set, signo))

static int
sigwait_on(const sigset_t *restrict set, int *restrict signo)
{
    bool is_begun = begin_wait(set);

    return end_wait(is_begun, cpprof__real(sigwait)(set, signo));
}

TAKE_OVER(sigwaitinfo, int,
          (const sigset_t *restrict set, siginfo_t *restrict info), (set, info))

static int
sigwaitinfo_on(const sigset_t *restrict set, siginfo_t *restrict info)
{
    bool is_begun = begin_wait(set);

    return end_wait(is_begun, cpprof__real(sigwaitinfo)(set, info));
}

TAKE_OVER(sigtimedwait, int,
          (const sigset_t *restrict set, siginfo_t *restrict info,
           const struct timespec *restrict timeout),
          (set, info, timeout))

static int
sigtimedwait_on(const sigset_t *restrict set, siginfo_t *restrict info,
                const struct timespec *restrict timeout)
{
    bool is_begun = begin_wait(set);

    return end_wait(is_begun, cpprof__real(sigtimedwait)(set, info, timeout));
}
