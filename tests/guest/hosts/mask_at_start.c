/* SPDX-License-Identifier: MIT */
/* guest: 4. Signals are as they were given: masks and actions. */
#include "host.h"

int
main(void)
{
    sigset_t mask;

    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int i = 1; i < 65; i++) {
        struct sigaction action;

        if (i == 32 || i == 33)
            continue;
        sigaction(i, NULL, &action);
        if (sigismember(&mask, i) || action.sa_handler != SIG_DFL)
            printf("%d: masked %d, ignored %d, default %d\n", i,
                   sigismember(&mask, i), action.sa_handler == SIG_IGN,
                   action.sa_handler == SIG_DFL);
    }
    return host_wrong;
}
