/* SPDX-License-Identifier: MIT */
/* guest: 4. Timers of the program's own fire as often as they should. */
#include "host.h"
#include <sys/time.h>

static volatile sig_atomic_t real, virtual, timer;

static void
count(int signal)
{
    real += signal == SIGALRM;
    virtual += signal == SIGVTALRM;
    timer += signal == SIGUSR2;
}

int
main(void)
{
    struct itimerval every = {{0, 10000}, {0, 10000}}, off = {0};
    struct itimerspec often = {{0, 10000000}, {0, 10000000}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
                             .sigev_signo = SIGUSR2};
    timer_t id;

    signal(SIGALRM, count);
    signal(SIGVTALRM, count);
    signal(SIGUSR2, count);
    timer_create(CLOCK_MONOTONIC, &event, &id);
    timer_settime(id, 0, &often, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    setitimer(ITIMER_VIRTUAL, &every, NULL);
    use_cpu_ms(200);
    setitimer(ITIMER_REAL, &off, NULL);
    setitimer(ITIMER_VIRTUAL, &off, NULL);
    timer_delete(id);
    EXPECT(real >= 10, "SIGALRM %d times", (int)real);
    EXPECT(virtual >= 8 && virtual <= 40, "SIGVTALRM %d times", (int)virtual);
    EXPECT(timer >= 10, "SIGUSR2 %d times", (int)timer);
    return host_wrong;
}
