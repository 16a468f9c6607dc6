/* SPDX-License-Identifier: MIT */
/* guest: 2. A child of the bare system call clone(), of which libc and its
 * handlers of fork know nothing, computes, makes a thread and a child, changes
 * its group, and ends by exit() or _exit(), as soon as alone. Its parent goes
 * on. */
#include "host.h"
#include <sys/syscall.h>

enum { STATUS = 7, WAYS = 4, MOST_S = 8 };

static void *
thread(void *arg)
{
    busy_ms(5);
    return free(malloc(1000)), arg;
}

static void
child(int way)
{
    alarm(40);
    busy_ms(30);
    if (way & 2) {
        pthread_t t;
        pid_t pid;

        EXPECT(setgid(getgid()) == 0, "setgid: %s", strerror(errno));
        EXPECT(pthread_create(&t, NULL, thread, NULL) == 0, "no thread");
        pthread_join(t, NULL);
        pid = fork();
        if (pid == 0)
            _exit(3);
        EXPECT(status_of(pid) == 3, "the child's child ended otherwise");
        sleep_ms(1200);
        busy_ms(30);
    }
    if (way & 1)
        _exit(host_wrong ? host_wrong : STATUS);
    exit(host_wrong ? host_wrong : STATUS);
}

int
main(void)
{
    uint64_t begin = host_ns(CLOCK_MONOTONIC);
    pid_t pids[WAYS];
    int way, status;

    busy_ms(20);
    for (way = 0; way < WAYS; way++) {
        pids[way] = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (pids[way] == 0)
            child(way);
    }
    for (way = 0; way < WAYS; way++) {
        status = status_of(pids[way]);
        EXPECT(status == STATUS, "way %d: it ended with %d", way, status);
    }
    EXPECT(host_ns(CLOCK_MONOTONIC) - begin < MOST_S * 1000000000ull,
           "it took more than %d s", MOST_S);
    busy_ms(20);
    return host_wrong;
}
