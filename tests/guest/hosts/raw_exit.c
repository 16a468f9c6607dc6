/* SPDX-License-Identifier: MIT */
/* guest: 2. A process of one thread that ends by the raw system call exit, or
 * is killed for a system call, has the status that it has alone. */
#include "filter.h"

static void
end_raw(void)
{
    syscall(SYS_exit, 7);
}

/* A filter that kills the thread, as older sandboxes have it. */
static void
end_by_filter(void)
{
    struct sock_filter lines[] = {
        FILTER_BEGIN,
        FILTER_CASE(SYS_getppid, SECCOMP_RET_KILL_THREAD),
        ALLOW_OTHERS,
    };

    FILTER_SET(lines, 0);
    getppid();
}

/* The status of the last thread counts, or that of the main thread: 0 or 5 by
 * the kernel's version. */
static void *
outlive(void *arg)
{
    sleep_ms(900);
    return arg;
}

static void
leave_thread(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, outlive, NULL);
    syscall(SYS_exit, 5);
}

static void
test(void (*end)(void), unsigned ms, int wanted)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        sleep_ms(ms);
        end();
        _exit(99);
    }
    status = status_of(pid);
    EXPECT(status == wanted, "%d after %u ms, not %d", status, ms, wanted);
}

static void *
outlive_shortly(void *arg)
{
    sleep_ms(100);
    return arg;
}

/* The least of some, on a busy machine. */
static void
test_last_thread(void)
{
    uint64_t least = UINT64_MAX, begin, took;
    pthread_t thread;
    int i;

    for (i = 0; i < 4 && least > 500000000; i++) {
        pid_t pid;

        begin = host_ns(CLOCK_MONOTONIC);
        pid = fork();
        if (pid == 0) {
            pthread_create(&thread, NULL, outlive_shortly, NULL);
            pthread_exit(NULL);
        }
        status_of(pid);
        took = host_ns(CLOCK_MONOTONIC) - begin;
        least = took < least ? took : least;
    }
    EXPECT(least < 700000000, "%.0f ms to the end", (double)least / 1e6);
}

int
main(void)
{
    pid_t pid;

    test_last_thread();
    test(end_raw, 0, 7);
    test(end_raw, 1100, 7);
    test(end_by_filter, 20, 256 + SIGSYS);
    pid = fork();
    if (pid == 0)
        leave_thread();
    printf("%d\n", status_of(pid));
    fflush(stdout);
    busy_ms(20);
    syscall(SYS_exit, host_wrong);
    return 99;
}
