/* SPDX-License-Identifier: MIT */
/* guest: 2. exit() by a handler that interrupted malloc or free, as many
 * programs end on SIGTERM: with one thread libc bears it. */
#include "host.h"
#include <sys/time.h>

static void
leave(int signo)
{
    (void)signo;
    exit(0);
}

int
main(void)
{
    struct itimerval when = {{0, 0}, {0, 60000 + getpid() % 1000}};
    static void *volatile blocks[32];
    unsigned i;

    signal(SIGALRM, leave);
    setitimer(ITIMER_REAL, &when, NULL);
    /* Blocks that are too large to be kept for this thread alone. */
    for (i = 0;; i++) {
        free(blocks[i % 32]);
        blocks[i % 32] = malloc(3000 + i % 50 * 100);
    }
}
