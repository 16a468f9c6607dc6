/* SPDX-License-Identifier: MIT */
/*
 * When to read the clock. Spans follow each other without a gap, so their sum
 * is the time that passes, and who is charged is decided only where a quantum
 * is full. The counter of the processor, which costs a fifth of the clock,
 * says that this may not be so yet. One that goes wrong makes the look late, or
 * early; no time is lost.
 */
#ifndef BINDINGS_COUNTER_H
#define BINDINGS_COUNTER_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Tunable: how late. More: the time of short functions goes to others; less:
 * the clock is read more often. 1/5 of the least quantum. */
#define COUNTER_LOOK_NS 20000

static inline uint64_t
counter_read(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t n;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(n));
    return n;
#else
    return 0; /* and a look of 0: always */
#endif
}

static inline uint64_t
clock_ns(clockid_t clock)
{
    struct timespec t = {0, 0};

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The look in units of the counter: the shortest of some, as the processor may
 * be lost in between. */
static inline uint64_t
counter_measure(void)
{
    uint64_t least = UINT64_MAX;
    int i;

    for (i = 0; i < 5; i++) {
        uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC), begin = counter_read(),
                 n;

        while (clock_ns(CLOCK_MONOTONIC) < begin_ns + COUNTER_LOOK_NS) {
        }
        n = counter_read() - begin;
        if (n < least)
            least = n;
    }
    return least;
}

#endif
