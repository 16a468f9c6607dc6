/* SPDX-License-Identifier: MIT */
/*
 * The program's own handler for the sampling signal: accepted, reported back,
 * and called for every signal that is not ours. Source: signal(2), sigset(3).
 */
#include "collect/threads/action.h"
#include "interpose/take_over.h"

#include <signal.h>
#include <stdbool.h>

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

    if (is_others(signo, handler) || handler == SIG_HOLD)
        return cpprof__real(sigset)(signo, handler);
    old = set_handler(signo, handler, 0);
    sigemptyset(&one);
    sigaddset(&one, signo);
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
