/* SPDX-License-Identifier: MIT */
/*
 * Work of known length, and clocks to hold profiles against.
 */
#include "load.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

volatile uint64_t load_sink;

static uint64_t
clock_ns(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

uint64_t
thread_cpu_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t
wall_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static uint64_t
thread_ready_ns(void)
{
    unsigned long long ns = 0;
    FILE *file = fopen("/proc/thread-self/schedstat", "re");

    if (!file)
        return 0;
    if (fscanf(file, "%*u %llu", &ns) != 1)
        ns = 0;
    fclose(file);
    return ns;
}

uint64_t
thread_waited_ns(void)
{
    return wall_ns() - thread_cpu_ns() - thread_ready_ns();
}

struct timespec
in_an_hour(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    t.tv_sec += 3600;
    return t;
}

static uint64_t
timeval_ns(struct timeval t)
{
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_usec * 1000;
}

uint64_t
process_cpu_ns(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime);
}

/* One pass is about 100 us, so that reading the clock, a system call for a
 * thread's clock, is well below 1 % of the time. */
#define PASS_STEPS 50000

static inline __attribute__((always_inline)) uint64_t
mix(uint64_t x, unsigned n_steps)
{
    unsigned i;

    for (i = 0; i < n_steps; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

uint64_t
churn(uint64_t seed)
{
    return mix(seed | 1, 1000);
}

#define HOG(name)                                                              \
    __attribute__((noinline)) void name(uint64_t cpu_ns)                       \
    {                                                                          \
        uint64_t end = thread_cpu_ns() + cpu_ns;                               \
        uint64_t x = end | 1;                                                  \
                                                                               \
        while (thread_cpu_ns() < end)                                          \
            x = mix(x, PASS_STEPS);                                            \
        __atomic_store_n(&load_sink, x, __ATOMIC_RELAXED);                     \
    }

HOG(hog_one)
HOG(hog_two)
HOG(hog_three)
HOG(hog_four)
