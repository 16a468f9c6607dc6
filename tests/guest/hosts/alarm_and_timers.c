/* SPDX-License-Identifier: MIT */
/* guest: 4. Timers of the program's own fire, and no more often than they are
 * set to. How often they are heard depends on when the program may run, so it
 * runs until each was. */
#include "host.h"
#include <sys/time.h>

enum { ENOUGH = 10, EVERY_MS = 10, MS_MAX = 30000 };

static volatile sig_atomic_t real, virtual, timer;

static void
count(int signal)
{
    real += signal == SIGALRM;
    virtual += signal == SIGVTALRM;
    timer += signal == SIGUSR2;
}

static void
expect_count(const char *what, long n, unsigned ms)
{
    EXPECT(n >= ENOUGH, "%s %ld times", what, n);
    /* And a quarter for CPU time that is counted by ticks of the clock. */
    EXPECT(n <= (ms + ms / 4) / EVERY_MS + 2, "%s %ld times in %u ms", what, n,
           ms);
}

int
main(void)
{
    struct itimerval every = {{0, EVERY_MS * 1000}, {0, EVERY_MS * 1000}},
                     off = {0};
    struct itimerspec often = {{0, EVERY_MS * 1000000},
                               {0, EVERY_MS * 1000000}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
                             .sigev_signo = SIGUSR2};
    uint64_t start;
    unsigned ms;
    timer_t id;

    signal(SIGALRM, count);
    signal(SIGVTALRM, count);
    signal(SIGUSR2, count);
    timer_create(CLOCK_MONOTONIC, &event, &id);
    start = host_ns(CLOCK_MONOTONIC);
    timer_settime(id, 0, &often, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    setitimer(ITIMER_VIRTUAL, &every, NULL);
    do {
        use_cpu_ms(10);
        ms = (unsigned)((host_ns(CLOCK_MONOTONIC) - start) / 1000000);
    } while ((real < ENOUGH || virtual < ENOUGH || timer < ENOUGH) &&
             ms < MS_MAX);
    setitimer(ITIMER_REAL, &off, NULL);
    setitimer(ITIMER_VIRTUAL, &off, NULL);
    timer_delete(id);
    ms = (unsigned)((host_ns(CLOCK_MONOTONIC) - start) / 1000000);
    expect_count("SIGALRM", real, ms);
    expect_count("SIGVTALRM", virtual, ms);
    expect_count("SIGUSR2", timer, ms);
    return host_wrong;
}
