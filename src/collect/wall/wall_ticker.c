/* SPDX-License-Identifier: MIT */
/*
 * The own thread of wall profiles: each tick takes answers, and looks at some
 * threads.
 *
 * `busy` is held while threads are looked at and while answers are taken, so
 * whoever wants captures to come or go takes it and finds neither under way.
 */
#include "collect/wall/wall_ticker.h"

#include "arch/clock.h"
#include "arch/place.h"
#include "collect/signal/tables/mirror.h"
#include "collect/wall/wall.h"

/* Tunable: the periods that are one while nobody runs, a power of 2. More of
 * them cost less, and see the first moments of work after a pause less often.
 */
#define QUIET_PERIODS 4u

/* Tunable: the same when the recorder has ended and no other capture is there.
 * More of them cost less, and another capture begins later. */
#define STOPPED_PERIODS 128u

struct cpprof__own_lock cpprof__wall_busy CPPROF__AT_START;

struct cpprof__wall_summary
cpprof__wall_ticker_summary(const struct cpprof__wall_ticker *w, uint64_t now)
{
    return (struct cpprof__wall_summary){
        .options = w->options,
        .time_ns = w->time_ns,
        .duration_ns = (int64_t)(now - w->start_ns),
        .n_threads = w->sampler.n_threads_max,
        .n_looks = w->sampler.n_looks,
        .n_asked = w->sampler.n_asked,
    };
}

void
cpprof__wall_ticker_keep(const struct cpprof__wall_ticker *w, uint64_t now)
{
    const struct cpprof__wall_summary summary =
        cpprof__wall_ticker_summary(w, now);

    cpprof__wall_keep_summary(&summary);
}

/* Whoever counts takes what there is since it began, and all go on with an
 * empty table: so what was counted with label sets of long ago does not stay.
 */
static void
roll_over(struct cpprof__wall_ticker *w)
{
    struct cpprof__wall_counts *counts = &w->sampler.counts;
    struct cpprof__wall_capture *c;

    for (c = w->captures; c; c = c->next) {
        if (!cpprof__wall_counts_since(counts, &c->before, c->options.flags,
                                       &c->since))
            c->failed = true;
        cpprof__wall_base_free(&c->before);
    }
    cpprof__wall_counts_free(counts);
}

/* The only capture is that of a recorder that has ended. */
static bool
is_for_nobody(const struct cpprof__wall_ticker *w)
{
    return w->sampler.counts.is_kept && (!w->captures || !w->captures->next) &&
           cpprof__control_is_stopped(cpprof__mirror_plan.control);
}

/* A turn. When a look at each thread has found nobody who ran, the periods
 * grow: most of the cost is to wake up. A look is charged with the time since
 * the one before, so the estimate stays what it is. */
static void
tick(struct cpprof__periodic *periodic)
{
    struct cpprof__wall_ticker *w = (void *)periodic;

    cpprof__own_lock_take(&cpprof__wall_busy);
    if (is_for_nobody(w)) {
        cpprof__own_lock_give(&cpprof__wall_busy);
        periodic->n_periods = STOPPED_PERIODS;
        return;
    }
    cpprof__wall_sampler_tick(&w->sampler);
    if (w->sampler.counts.is_kept)
        cpprof__wall_ticker_keep(w, cpprof__now_ns(CLOCK_MONOTONIC));
    else if (cpprof__wall_counts_are_full(&w->sampler.counts))
        roll_over(w);
    cpprof__own_lock_give(&cpprof__wall_busy);
    if (w->sampler.n_quiet < w->sampler.n || !w->sampler.n)
        periodic->n_periods = 1;
    else if (periodic->n_periods < QUIET_PERIODS)
        periodic->n_periods *= 2;
}

int
cpprof__wall_ticker_start(struct cpprof__wall_ticker *w)
{
    w->periodic = (struct cpprof__periodic){.name = "cpprof-wall",
                                            .turn = tick,
                                            .period_ns = w->sampler.period_ns,
                                            .n_periods = 1,
                                            .flags = CPPROF__OWN_TABLE};
    return cpprof__periodic_start(&w->periodic);
}
