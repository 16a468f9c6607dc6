/* SPDX-License-Identifier: MIT */
/*
 * Decides when to read the clock. Spans follow each other without a gap, so
 * their sum is the time that passes, and somebody is charged only when a
 * quantum is full. The processor's counter, which costs a fifth of reading the
 * clock, tells that this cannot be so yet. If the counter is wrong the clock is
 * read late, or early; no time is lost.
 */
#ifndef BINDINGS_COUNTER_H
#define BINDINGS_COUNTER_H

#include "arch/atomic.h"
#include "arch/clock.h"

#include <stdbool.h>
#include <stdint.h>

/* Tunable: how late the clock may be read, 1/5 of the least quantum. If it is
 * larger, the time of short functions goes to others. If it is smaller, the
 * clock is read more often. */
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

/* That time in units of the counter; 0: not known yet. */
static uint64_t counter_look;

/* Find it out, once: the shortest of some measurements, because the thread may
 * lose its processor in between. Safety: AS. */
static inline void
counter_measure(void)
{
    uint64_t least = UINT64_MAX;
    int i;

    if (load_relaxed(&counter_look))
        return;
    for (i = 0; i < 5; i++) {
        uint64_t begin_ns = cpprof__now_ns(CLOCK_MONOTONIC),
                 begin = counter_read(), n;

        while (cpprof__now_ns(CLOCK_MONOTONIC) < begin_ns + COUNTER_LOOK_NS) {
        }
        n = counter_read() - begin;
        if (n < least)
            least = n;
    }
    store_relaxed(&counter_look, least);
}

/* May a quantum be full, since the counter was *looked? Then it is now. */
static inline bool
counter_may_be_due(uint64_t *looked)
{
    uint64_t now = counter_read();

    if (now - *looked < load_relaxed(&counter_look))
        return false;
    *looked = now;
    return true;
}

#endif
