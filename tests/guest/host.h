/* SPDX-License-Identifier: MIT */
/*
 * What the hosts share. A host is a program of one file that does what a
 * program may do, checks itself, and knows nothing of cpprof: run.py runs it
 * alone and in every mode, and compares. What it prints must not depend on
 * time or chance.
 */
#ifndef GUEST_HOST_H
#define GUEST_HOST_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int host_wrong __attribute__((unused));

/* One line of what is not as it should be, and exit status 1 in the end. */
#define EXPECT(good, ...)                                                      \
    do {                                                                       \
        if (!(good)) {                                                         \
            host_wrong = 1;                                                    \
            printf("%s:%d: ", __FILE__, __LINE__);                             \
            printf(__VA_ARGS__);                                               \
            putchar('\n');                                                     \
            fflush(stdout);                                                    \
        }                                                                      \
    } while (0)

__attribute__((unused)) static uint64_t
host_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Use so much of this thread's CPU time. */
__attribute__((unused, noinline)) static void
use_cpu_us(unsigned us)
{
    uint64_t end = host_ns(CLOCK_THREAD_CPUTIME_ID) + us * 1000ull;
    volatile uint64_t sink = 0;

    while (host_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        for (int i = 0; i < 2000; i++)
            sink += (uint64_t)i;
}

__attribute__((unused)) static void
use_cpu_ms(unsigned ms)
{
    use_cpu_us(ms * 1000);
}

/* How much of the time that it would be busy a host is, in percent: all of it
 * where CPU time makes ticks, little where it makes none. run.py says it. */
static unsigned host_busy __attribute__((unused)) = 100;

__attribute__((constructor, unused)) static void
host_reads_busy(void)
{
    const char *percent = getenv("HOST_BUSY");

    if (percent)
        host_busy = (unsigned)atoi(percent);
}

/* Be busy, to be sampled meanwhile. */
__attribute__((unused, noinline)) static void
busy_ms(unsigned ms)
{
    use_cpu_us(ms * 10 * host_busy);
}

__attribute__((unused)) static void
sleep_ms(unsigned ms)
{
    struct timespec t = {ms / 1000, (ms % 1000) * 1000000l};

    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        continue;
}

/* The exit status of a child, 256 + the signal that ended it. */
__attribute__((unused)) static int
status_of(pid_t pid)
{
    int status;

    if (waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
}

__attribute__((unused)) static void *
busy_thread(void *arg)
{
    busy_ms((unsigned)(uintptr_t)arg);
    return arg;
}

__attribute__((unused)) static pthread_t
start_busy(unsigned ms)
{
    pthread_t thread;
    int failed =
        pthread_create(&thread, NULL, busy_thread, (void *)(uintptr_t)ms);

    EXPECT(failed == 0, "pthread_create: %s", strerror(failed));
    return thread;
}

#endif
