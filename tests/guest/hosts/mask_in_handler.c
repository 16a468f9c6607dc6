/* SPDX-License-Identifier: MIT */
/* guest: 4. Masks that handlers and jumps change: nothing is pending in a
 * handler that blocks everything by a call, and ticks do not stop a loop of
 * changes. */
#include "host.h"
#include <setjmp.h>

static sigjmp_buf back;

static void
on_usr1(int signal)
{
    sigset_t all, pending, saved;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved);
    busy_ms(30);
    sigpending(&pending);
    EXPECT(sigismember(&pending, SIGPROF) != 1, "it is pending");
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    if (signal == SIGUSR2)
        siglongjmp(back, 1);
}

int
main(void)
{
    struct sigaction action = {.sa_handler = on_usr1};
    sigset_t one, mask;

    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    raise(SIGUSR1);
    for (volatile int i = 0; i < 3; i++)
        if (sigsetjmp(back, 1) == 0)
            raise(SIGUSR2);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    EXPECT(sigismember(&mask, SIGPROF) == 0, "it is blocked");
    sigemptyset(&one);
    sigaddset(&one, SIGPROF);
    for (int i = 0; i < 20000; i++) {
        sigset_t pending;

        sigprocmask(SIG_BLOCK, &one, NULL);
        sigpending(&pending);
        EXPECT(sigismember(&pending, SIGPROF) != 1, "pending in turn %d", i);
        sigprocmask(SIG_UNBLOCK, &one, NULL);
    }
    return host_wrong;
}
