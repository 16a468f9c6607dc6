/* SPDX-License-Identifier: MIT */
/* guest: Signals of the program's arrive while it is in our hooks. */
#include "host.h"
#include <sys/time.h>

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
    struct itimerval every = {{0, 500}, {0, 500}}, off = {0};
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    uint64_t begun = host_ns(CLOCK_MONOTONIC), ns = 0;

    signal(SIGALRM, count);
    setitimer(ITIMER_REAL, &every, NULL);
    while (ns < 150000000u || (n <= 20 && ns < 10000000000u)) {
        free(malloc(5000));
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        ns = host_ns(CLOCK_MONOTONIC) - begun;
    }
    setitimer(ITIMER_REAL, &off, NULL);
    EXPECT(n > 20, "%d signals", (int)n);
    return host_wrong;
}
