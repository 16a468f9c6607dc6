/* SPDX-License-Identifier: MIT */
/* guest: 4. Timers and messages that libc delivers by threads of its own
 * (SIGEV_THREAD) come as often as they are due, also while processes fork. */
#include "host.h"
#include <mqueue.h>

static unsigned n_ticks;

static void
tick(union sigval value)
{
    (void)value;
    __atomic_add_fetch(&n_ticks, 1, __ATOMIC_RELAXED);
}

int
main(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD,
                             .sigev_notify_function = tick};
    struct itimerspec when = {{0, 20000000}, {0, 20000000}};
    timer_t timer;

    EXPECT(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "no timer");
    EXPECT(timer_settime(timer, 0, &when, NULL) == 0, "not set");
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(0);
        EXPECT(status_of(pid) == 0, "a child");
        busy_ms(10);
        sleep_ms(20);
    }
    timer_delete(timer);
    EXPECT(n_ticks > 5, "%u ticks", n_ticks);
    sleep_ms(50);
    return host_wrong;
}
