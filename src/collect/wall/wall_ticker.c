/* SPDX-License-Identifier: MIT */
/*
 * The own thread of wall profiles: each tick comes at a random moment of its
 * own period, takes answers, and looks at some threads.
 *
 * A fixed pace would see periodic work always or never. `busy` is held while
 * threads are looked at and while answers are taken, so whoever wants captures
 * to come or go takes it and finds neither under way. The thread is stopped
 * through a futex.
 */
#include "collect/wall/wall_ticker.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "collect/runtime/own_threads.h"
#include "collect/wall/wall.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Tunable: the periods that are one while nobody runs, a power of 2. More of
 * them cost less, and see the first moments of work after a pause less often.
 */
#define QUIET_PERIODS 4u

struct cpprof__own_lock cpprof__wall_busy;

/* Below n. */
static uint64_t
draw(struct cpprof__wall_ticker *w, uint64_t n)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random % n;
}

/* False: it is time to finish. */
static bool
sleep_until(struct cpprof__wall_ticker *w, uint64_t until)
{
    while (!load_acquire(&w->finish)) {
        uint64_t now = cpprof__now_ns(CLOCK_MONOTONIC);
        struct timespec timeout;

        if (now >= until)
            return true;
        timeout = cpprof__timespec_of(until - now);
        syscall(SYS_futex, &w->finish, FUTEX_WAIT_PRIVATE, 0, &timeout, NULL,
                0);
    }
    return false;
}

struct cpprof__wall_summary
cpprof__wall_ticker_summary(const struct cpprof__wall_ticker *w)
{
    return (struct cpprof__wall_summary){
        .options = w->options,
        .time_ns = w->time_ns,
        .duration_ns = (int64_t)(cpprof__now_ns(CLOCK_MONOTONIC) - w->start_ns),
        .n_threads = w->sampler.n_threads_max,
        .n_looks = w->sampler.n_looks,
        .n_asked = w->sampler.n_asked,
    };
}

void
cpprof__wall_ticker_keep(const struct cpprof__wall_ticker *w)
{
    const struct cpprof__wall_summary summary = cpprof__wall_ticker_summary(w);

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

static void
tick(struct cpprof__wall_ticker *w)
{
    cpprof__own_lock_take(&cpprof__wall_busy);
    cpprof__wall_sampler_tick(&w->sampler);
    if (w->sampler.counts.is_kept)
        cpprof__wall_ticker_keep(w);
    else if (cpprof__wall_counts_are_full(&w->sampler.counts))
        roll_over(w);
    cpprof__own_lock_give(&cpprof__wall_busy);
}

/*
 * Each tick comes at a random moment of its own period, so that what the
 * program does at a steady pace is seen as often as it happens. When a look at
 * each thread has found nobody who ran, the periods grow: most of the cost is
 * to wake up. A look is charged with the time since the one before, so the
 * estimate stays what it is.
 */
static bool
run(void *arg)
{
    struct cpprof__wall_ticker *w = arg;
    uint64_t begin = w->start_ns, period = w->sampler.period_ns;
    unsigned n_periods = 1;

    while (sleep_until(w, begin + draw(w, n_periods * period))) {
        uint64_t now;

        tick(w);
        if (cpprof__own_thread_must_leave())
            return true;
        begin += n_periods * period;
        if (w->sampler.n_quiet < w->sampler.n || !w->sampler.n)
            n_periods = 1;
        else if (n_periods < QUIET_PERIODS)
            n_periods *= 2;
        now = cpprof__now_ns(CLOCK_MONOTONIC);
        if (now > begin + 2 * period)
            begin = now; /* the process was stopped, or has no processor */
    }
    return false;
}

int
cpprof__wall_ticker_start(struct cpprof__wall_ticker *w)
{
    w->thread = (struct cpprof__own_thread){
        .name = "cpprof-wall", .run = run, .arg = w, .wake = &w->finish};
    return cpprof__own_thread_start(&w->thread);
}

void
cpprof__wall_ticker_stop(struct cpprof__wall_ticker *w)
{
    store_release(&w->finish, 1u);
    syscall(SYS_futex, &w->finish, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    cpprof__own_thread_join(&w->thread, UINT64_MAX);
}
