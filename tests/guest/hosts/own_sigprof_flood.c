/* SPDX-License-Identifier: MIT */
/* guest: 4. The program's action is stored before ours is there: signals that
 * come at the very beginning find its handler. */
#include "host.h"

static volatile sig_atomic_t n;

static void
count(int signal)
{
    (void)signal;
    n++;
}

int
main(void)
{
    signal(SIGPROF, count);
    for (int i = 0; i < 500; i++)
        kill(getpid(), SIGPROF);
    EXPECT(n == 500, "heard %d", (int)n);
    return host_wrong;
}
