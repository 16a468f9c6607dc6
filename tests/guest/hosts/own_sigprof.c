/* SPDX-License-Identifier: MIT */
/* guest: 4. The program's own SIGPROF and ITIMER_PROF work: all that it hears
 * is of that timer, and no more than that sends in the time. The kernel counts
 * what a process uses by ticks, so how much of the time that is, is chance. */
#include "host.h"
#include <sys/time.h>

enum { ENOUGH = 10, EVERY_US = 5000, MS_MAX = 30000 };

static volatile sig_atomic_t n, n_others;

static void
count(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    n++;
    n_others += info->si_code != SI_KERNEL;
}

int
main(void)
{
    struct itimerval every = {{0, EVERY_US}, {0, EVERY_US}}, off = {0}, was;
    struct sigaction action = {.sa_sigaction = count,
                               .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigaction old;
    uint64_t start;
    unsigned ms;

    sigaction(SIGPROF, &action, &old);
    EXPECT(old.sa_handler == SIG_DFL, "it had a handler");
    start = host_ns(CLOCK_MONOTONIC);
    EXPECT(setitimer(ITIMER_PROF, &every, NULL) == 0, "setitimer");
    do {
        use_cpu_ms(10);
        ms = (unsigned)((host_ns(CLOCK_MONOTONIC) - start) / 1000000);
    } while (n < ENOUGH && ms < MS_MAX);
    setitimer(ITIMER_PROF, &off, &was);
    ms = (unsigned)((host_ns(CLOCK_MONOTONIC) - start) / 1000000);
    EXPECT(was.it_interval.tv_usec == 5000 || was.it_interval.tv_usec == 8000,
           "interval %ld", (long)was.it_interval.tv_usec);
    EXPECT(n >= ENOUGH && n_others == 0, "heard %d, %d of others", (int)n,
           (int)n_others);
    EXPECT(n <= (ms + ms / 4) * 1000 / EVERY_US + 2, "heard %d in %u ms",
           (int)n, ms);
    sigaction(SIGPROF, NULL, &old);
    EXPECT(old.sa_sigaction == count && old.sa_flags & SA_RESTART,
           "another action is there");
    return host_wrong;
}
