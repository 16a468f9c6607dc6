/* SPDX-License-Identifier: MIT */
/* guest: 4. The program's own SIGPROF and ITIMER_PROF work. */
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
    struct itimerval every = {{0, 5000}, {0, 5000}}, off = {0}, was;
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    struct sigaction old;

    sigaction(SIGPROF, &action, &old);
    EXPECT(old.sa_handler == SIG_DFL, "it had a handler");
    EXPECT(setitimer(ITIMER_PROF, &every, NULL) == 0, "setitimer");
    use_cpu_ms(200);
    setitimer(ITIMER_PROF, &off, &was);
    EXPECT(was.it_interval.tv_usec == 5000 || was.it_interval.tv_usec == 8000,
           "interval %ld", (long)was.it_interval.tv_usec);
    EXPECT(n >= 15 && n <= 60, "heard %d", (int)n);
    sigaction(SIGPROF, NULL, &old);
    EXPECT(old.sa_handler == count && old.sa_flags & SA_RESTART,
           "another action is there");
    return host_wrong;
}
