/* SPDX-License-Identifier: MIT */
/* guest: 4. A handler that stands in front of that of signal 33, by a bare
 * system call, and hands on to it, stays there; so does another profiler. */
#include "host.h"
#include <sys/syscall.h>

struct action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

static struct action behind;
static volatile int done;

static void
hands_on(int signo, siginfo_t *info, void *context)
{
    behind.handler(signo, info, context);
}

static void *
waits(void *arg)
{
    while (!done)
        sleep_ms(1);
    return arg;
}

int
main(void)
{
    struct action front;
    pthread_t thread;

    pthread_create(&thread, NULL, waits, NULL);
    EXPECT(syscall(SYS_rt_sigaction, 33, NULL, &behind, 8) == 0, "read");
    front = behind;
    front.handler = hands_on;
    EXPECT(syscall(SYS_rt_sigaction, 33, &front, NULL, 8) == 0, "set");
    for (int i = 0; i < 6; i++) {
        busy_ms(5);
        sleep_ms(70);
        EXPECT(setgid(getgid()) == 0, "setgid: %s", strerror(errno));
    }
    done = 1;
    pthread_join(thread, NULL);
    return host_wrong;
}
