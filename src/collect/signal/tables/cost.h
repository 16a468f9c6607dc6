/* SPDX-License-Identifier: MIT */
/*
 * What sampling takes of the program's threads, while somebody wants to know:
 * ticks of the signal, and walks in hooks. One in so many is measured, by the
 * processor's counter, which needs no system call: a program may have forbidden
 * all of them.
 */
#ifndef COLLECT_SIGNAL_COST_H
#define COLLECT_SIGNAL_COST_H

#include "arch/atomic.h"
#include "arch/clock.h"
#include "arch/regs.h"

#include <stdint.h>

enum cpprof__cost_of {
    CPPROF__COST_TICKS,
    CPPROF__COST_WALKS,
    CPPROF__COSTS,
};

#define CPPROF__COST_ONE_IN 16

/* One that took so many times the least was put off its processor meanwhile, or
 * waited for memory: it counts as so much. */
#define CPPROF__COST_MOST 16

extern struct cpprof__cost {
    uint32_t is_on;
    struct {
        uint64_t n, cycles, least;
    } of[CPPROF__COSTS];
} cpprof__cost;

/* What the end is told. Safety: AS. */
static inline uint64_t
cpprof__cost_begin(enum cpprof__cost_of what)
{
    if (!load_relaxed(&cpprof__cost.is_on) ||
        __atomic_fetch_add(&cpprof__cost.of[what].n, 1u, __ATOMIC_RELAXED) %
            CPPROF__COST_ONE_IN ||
        load_relaxed(&cpprof__counter_is_forbidden))
        return 0;
    return cpprof__cycles();
}

static inline void
cpprof__cost_end(enum cpprof__cost_of what, uint64_t begin)
{
    uint64_t took, least;

    if (!begin)
        return;
    took = cpprof__cycles() - begin;
    least = load_relaxed(&cpprof__cost.of[what].least);
    if (!least || took < least)
        store_relaxed(&cpprof__cost.of[what].least, took);
    else if (took / CPPROF__COST_MOST > least)
        took = least * CPPROF__COST_MOST;
    add_relaxed(&cpprof__cost.of[what].cycles, took * CPPROF__COST_ONE_IN);
}

#endif
