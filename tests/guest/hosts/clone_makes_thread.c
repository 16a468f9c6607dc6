/* SPDX-License-Identifier: MIT */
/* guest: 2. A child of the bare system call clone() makes a thread, whatever
 * threads that it has not were at when it was made. Many that sleep keep those
 * of a profiler at work. */
#include "host.h"
#include <sys/syscall.h>

enum { THREADS = 200, CHILDREN = 100, STATUS = 7 };

static void *
sleeper(void *arg)
{
    for (;;)
        pause();
    return arg;
}

static void *
thread(void *arg)
{
    return free(malloc(1000)), arg;
}

static void
child(void)
{
    pthread_t t;

    alarm(20);
    if (pthread_create(&t, NULL, thread, NULL) || pthread_join(t, NULL))
        _exit(1);
    _exit(STATUS);
}

int
main(void)
{
    pthread_attr_t small;
    pthread_t t;
    int i, status;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    for (i = 0; i < THREADS; i++)
        EXPECT(!pthread_create(&t, &small, sleeper, NULL), "thread %d", i);
    busy_ms(50);
    for (i = 0; i < CHILDREN && !host_wrong; i++) {
        pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

        if (pid == 0)
            child();
        status = status_of(pid);
        EXPECT(status == STATUS, "child %d ended with %d", i, status);
    }
    return host_wrong;
}
