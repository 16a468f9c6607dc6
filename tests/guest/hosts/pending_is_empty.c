/* SPDX-License-Identifier: MIT */
/* guest: 4. Nothing is pending in a thread that blocks everything. */
#include "host.h"

int
main(void)
{
    sigset_t all, pending;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    busy_ms(200);
    sigpending(&pending);
    for (int i = 1; i < 65; i++)
        EXPECT(sigismember(&pending, i) != 1, "signal %d is pending", i);
    return host_wrong;
}
