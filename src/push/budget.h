/* SPDX-License-Identifier: MIT */
/*
 * A limit to what sampling and pushing cost. What they take is measured over
 * each interval, and rates and intervals follow it by powers of two: while it
 * is more than the limit, the rates fall if sampling takes most of it, and
 * intervals grow if making and sending profiles does. They come back when there
 * is room for twice as much.
 *
 * The limit is a share of the CPU time of the process, or of one processor's
 * time if that is more.
 */
#ifndef PUSH_BUDGET_H
#define PUSH_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* Rates fall to a 64th, intervals grow to 32 times. */
#define CPPROF__BUDGET_RATES     6u
#define CPPROF__BUDGET_INTERVALS 5u

struct cpprof__push_budget {
    uint32_t ppm; /* millionths; 0: there is no limit */

    /* Powers of two. */
    unsigned rates, intervals;

    /* At the last look. */
    uint64_t cycles, mono_ns, cpu_ns, threads_ns;
    uint64_t sampling_cycles, n_ticks;

    /* Of the heap, of block and of mutex: what the program wants, and what was
     * set. */
    int64_t wanted[3], set[3];
};

/* Begin to measure, if there is a limit. */
void
cpprof__push_budget_begin(struct cpprof__push_budget *budget, uint32_t ppm);
void
cpprof__push_budget_end(struct cpprof__push_budget *budget);

/* An interval is over: the rates of the heap, of block and of mutex are set. */
void
cpprof__push_budget_look(struct cpprof__push_budget *budget);

/* What follows from what was spent, and from what may be. */
void
cpprof__push_budget_decide(struct cpprof__push_budget *budget,
                           uint64_t sampling_ns, uint64_t threads_ns,
                           uint64_t allowed_ns);

#endif
