/* SPDX-License-Identifier: MIT */
/*
 * The program's own handler for the sampling signal: accepted, reported back,
 * and called for every signal that is not ours. Source: signal(2), sigset(3).
 */
#include "collect/runtime/real.h"
#include "collect/threads/action.h"
#include <cpprof/status.h>

#include <signal.h>
#include <stdbool.h>

CPPROF_API int
sigaction(int signo, const struct sigaction *restrict action,
          struct sigaction *restrict old)
{
    return cpprof__action_swap(signo, action, old);
}

typedef sighandler_t
signal_fn(int, sighandler_t);

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

CPPROF_API sighandler_t
signal(int signo, sighandler_t handler)
{
    if (is_others(signo, handler))
        return CPPROF__REAL(signal_fn *, signal)(signo, handler);
    return set_handler(signo, handler, SA_RESTART);
}

/* Declared by older standards only. */
CPPROF_API sighandler_t
bsd_signal(int signo, sighandler_t handler);

CPPROF_API sighandler_t
bsd_signal(int signo, sighandler_t handler)
{
    return signal(signo, handler);
}

CPPROF_API sighandler_t
__sysv_signal(int signo, sighandler_t handler)
{
    if (is_others(signo, handler))
        return CPPROF__REAL(signal_fn *, __sysv_signal)(signo, handler);
    return set_handler(signo, handler, (int)(SA_RESETHAND | SA_NODEFER));
}

CPPROF_API sighandler_t
sysv_signal(int signo, sighandler_t handler)
{
    return __sysv_signal(signo, handler);
}

/* Source: sigset(3). SIG_HOLD blocks the signal and leaves the disposition. */
CPPROF_API sighandler_t
sigset(int signo, sighandler_t handler)
{
    sigset_t one, before;
    sighandler_t old;

    if (is_others(signo, handler) || handler == SIG_HOLD)
        return CPPROF__REAL(signal_fn *, sigset)(signo, handler);
    old = set_handler(signo, handler, 0);
    sigemptyset(&one);
    sigaddset(&one, signo);
    pthread_sigmask(SIG_UNBLOCK, &one, &before);
    return sigismember(&before, signo) == 1 ? SIG_HOLD : old;
}

CPPROF_API int
sigignore(int signo)
{
    typedef int ignore_fn(int);

    if (!cpprof__action_concerns(signo))
        return CPPROF__REAL(ignore_fn *, sigignore)(signo);
    return set_handler(signo, SIG_IGN, 0) == SIG_ERR ? -1 : 0;
}
