/* SPDX-License-Identifier: MIT */
/*
 * Three things are added up: what handlers and hooks measure of themselves
 * (signal/tables/cost.h), what the kernel takes for a signal, and the CPU time
 * of our threads.
 */
#include "push/budget.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "collect/runtime/own_list.h"
#include "collect/signal/tables/cost.h"

#include <cpprof/heap.h>
#include <cpprof/profiles.h>

#include <string.h>
#include <time.h>

/* What a signal takes beside the handler: to be delivered, and to return. */
#define SIGNAL_NS 2000

static uint64_t
sampling_cycles(void)
{
    return load_relaxed(&cpprof__cost.of[CPPROF__COST_TICKS].cycles) +
           load_relaxed(&cpprof__cost.of[CPPROF__COST_WALKS].cycles);
}

static void
note(struct cpprof__push_budget *b)
{
    b->cycles = cpprof__cycles();
    b->mono_ns = cpprof__now_ns(CLOCK_MONOTONIC);
    b->cpu_ns = cpprof__now_ns(CLOCK_PROCESS_CPUTIME_ID);
    b->threads_ns = cpprof__own_list_cpu_ns();
    b->sampling_cycles = sampling_cycles();
    b->n_ticks = load_relaxed(&cpprof__cost.of[CPPROF__COST_TICKS].n);
}

void
cpprof__push_budget_begin(struct cpprof__push_budget *b, uint32_t ppm)
{
    memset(b, 0, sizeof *b);
    b->ppm = ppm;
    if (!ppm)
        return;
    store_relaxed(&cpprof__cost.is_on, 1u);
    note(b);
}

/* ---- rates that others may set, too ------------------------------------ */

static int64_t
rate_of(unsigned i, int64_t rate)
{
    if (i == 0)
        return cpprof_heap_set_rate(rate);
    return i == 1 ? cpprof_block_set_rate(rate)
                  : cpprof_mutex_set_fraction((int)rate);
}

/* A larger number samples less. What the program sets itself meanwhile is what
 * it wants from then on; 0 samples nothing. */
static void
set_rates(struct cpprof__push_budget *b)
{
    unsigned i;

    for (i = 0; i < 3; i++) {
        int64_t now = rate_of(i, -1), wanted;

        if (now != b->set[i])
            b->wanted[i] = now;
        wanted = b->wanted[i] << b->rates;
        if (now && wanted != now)
            rate_of(i, wanted);
        b->set[i] = now ? wanted : 0;
    }
}

void
cpprof__push_budget_end(struct cpprof__push_budget *b)
{
    if (!b->ppm)
        return;
    b->rates = 0;
    set_rates(b);
    store_relaxed(&cpprof__cost.is_on, 0u);
    b->ppm = 0;
}

/* ---- what follows ------------------------------------------------------- */

static void
raise_power(unsigned *power, unsigned most, uint64_t spent, uint64_t allowed)
{
    while (*power < most && spent > allowed) {
        ++*power;
        spent /= 2;
    }
}

/* Where twice the limit is spent both follow: what is drained of a ring is the
 * cost of a thread, too, and depends on rates. */
static void
spend_less(struct cpprof__push_budget *b, uint64_t sampling_ns,
           uint64_t threads_ns, uint64_t allowed_ns)
{
    uint64_t spent = sampling_ns + threads_ns;
    bool is_sampling = sampling_ns > threads_ns;

    if (is_sampling || b->intervals == CPPROF__BUDGET_INTERVALS)
        raise_power(&b->rates, CPPROF__BUDGET_RATES, spent, allowed_ns);
    else
        raise_power(&b->intervals, CPPROF__BUDGET_INTERVALS, spent, allowed_ns);
    if (spent / 2 <= allowed_ns)
        return;
    if (is_sampling)
        b->intervals += b->intervals < CPPROF__BUDGET_INTERVALS;
    else
        b->rates += b->rates < CPPROF__BUDGET_RATES;
}

void
cpprof__push_budget_decide(struct cpprof__push_budget *b, uint64_t sampling_ns,
                           uint64_t threads_ns, uint64_t allowed_ns)
{
    uint64_t spent = sampling_ns + threads_ns,
             room = allowed_ns - allowed_ns / 8;

    if (spent > allowed_ns)
        spend_less(b, sampling_ns, threads_ns, allowed_ns);
    else if (b->rates && spent + sampling_ns < room)
        b->rates--;
    else if (b->intervals && spent + threads_ns <= allowed_ns)
        b->intervals--;
}

static uint64_t
since(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

void
cpprof__push_budget_look(struct cpprof__push_budget *b)
{
    struct cpprof__push_budget before = *b;
    uint64_t spent, elapsed, cpu, sampling;
    double ns_of_cycle;

    if (!b->ppm)
        return;
    note(b);
    elapsed = since(b->mono_ns, before.mono_ns);
    spent = since(b->threads_ns, before.threads_ns);
    cpu = since(since(b->cpu_ns, before.cpu_ns), spent);
    ns_of_cycle = b->cycles > before.cycles
                      ? (double)elapsed / (double)(b->cycles - before.cycles)
                      : 0;
    sampling =
        (uint64_t)((double)since(b->sampling_cycles, before.sampling_cycles) *
                   ns_of_cycle) +
        since(b->n_ticks, before.n_ticks) * SIGNAL_NS;
    cpprof__push_budget_decide(
        b, sampling, spent, (cpu > elapsed ? cpu : elapsed) / 1000000 * b->ppm);
    set_rates(b);
}
