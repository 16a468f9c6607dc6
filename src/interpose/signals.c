/* SPDX-License-Identifier: MIT */
/*
 * The program's own handler for the sampling signal: accepted, reported back,
 * and called for every signal that is not ours. Source: signal(2), sigset(3).
 */
#include "collect/action.h"
#include <cpprof/status.h>

#include <signal.h>
#include <string.h>

CPPROF_API int
sigaction(int signo, const struct sigaction *restrict action,
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

CPPROF_API sighandler_t
signal(int signo, sighandler_t handler)
{
    return set_handler(signo, handler, SA_RESTART);
}

/* Declared by older standards only. */
CPPROF_API sighandler_t
bsd_signal(int signo, sighandler_t handler);

CPPROF_API sighandler_t
bsd_signal(int signo, sighandler_t handler)
{
    return set_handler(signo, handler, SA_RESTART);
}

CPPROF_API sighandler_t
__sysv_signal(int signo, sighandler_t handler)
{
    return set_handler(signo, handler, (int)(SA_RESETHAND | SA_NODEFER));
}

CPPROF_API sighandler_t
sysv_signal(int signo, sighandler_t handler)
{
    return set_handler(signo, handler, (int)(SA_RESETHAND | SA_NODEFER));
}
