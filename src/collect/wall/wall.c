/* SPDX-License-Identifier: MIT */
/*
 * The sampler of wall time (life.h), and its public calls. The ticker is a
 * thread of ours (wall_ticker.h). Its list of captures and its counts are
 * guarded by cpprof__wall_busy, which is held for as long as a tick takes.
 */
#include "collect/wall/wall.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "arch/place.h"
#include "base/options.h"
#include "base/status.h"
#include "base/writer.h"
#include "collect/dump/dump.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/uncancelled.h"
#include "collect/signal/tables/interp_frames.h"
#include "collect/threads/tasks.h"
#include "collect/wall/wall_ticker.h"
#include "own/memory.h"

#include <stdlib.h>
#include <string.h>

#define WALL_FLAGS                                                             \
    (CPPROF_FLAG_OFF_CPU | CPPROF_FLAG_NO_LABELS | CPPROF_FLAG_FGPROF |        \
     CPPROF_FLAG_COLLAPSED)

/* Tunables. Looks in a second. Each takes some 0.5 us, so all take 0.2 % of a
 * processor. More gives more samples when there are many threads. */
#define LOOKS_HZ 3200u

static struct cpprof__wall_ticker *ticker CPPROF__AT_START; /* while it runs */

static struct cpprof__wall_capture *
wall(struct cpprof_capture *c)
{
    return (struct cpprof__wall_capture *)c;
}

/* ---- captures --------------------------------------------------------- */

static enum cpprof_status
read_options(const struct cpprof_wall_options *given,
             struct cpprof_wall_options *options, struct cpprof_error *error)
{
    enum cpprof_status status;

    memset(options, 0, sizeof *options);
    status = cpprof__options(options, sizeof *options, given,
                             "cpprof_wall_options", error);
    if (status == CPPROF_OK)
        status = cpprof__options_sampling(&options->rate_hz, 1000,
                                          &options->max_depth,
                                          CPPROF__MAX_DEPTH, error);
    return status == CPPROF_OK
               ? cpprof__options_flags(options->flags, WALL_FLAGS,
                                       options->symbolize, error)
               : status;
}

static enum cpprof_status
make(const struct cpprof_wall_options *given,
     const struct cpprof_writer *writer, struct cpprof_capture **out,
     struct cpprof_error *error)
{
    struct cpprof_wall_options options;
    struct cpprof__wall_capture *c;
    enum cpprof_status status = read_options(given, &options, error);

    if (status != CPPROF_OK)
        return status;
    c = cpprof__capture_new(&cpprof__wall_life, sizeof *c, writer);
    if (!c)
        return cpprof__fail_nomem(error);
    c->options = options;
    *out = &c->base;
    return CPPROF_OK;
}

enum cpprof_status
cpprof__wall_capture_new(const struct cpprof_wall_options *options,
                         const struct cpprof_writer *given,
                         struct cpprof_capture **out,
                         struct cpprof_error *error)
{
    struct cpprof_writer writer;
    enum cpprof_status status = cpprof__writer_take(given, &writer, error);

    if (status == CPPROF_OK)
        status = make(options, &writer, out, error);
    if (status != CPPROF_OK)
        cpprof__writer_refuse(&writer);
    return status;
}

static void
free_wall(struct cpprof__wall_ticker *w)
{
    cpprof__wall_sampler_free(&w->sampler);
    cpprof__free(w);
}

static void
set_up(struct cpprof__wall_ticker *w, const struct cpprof__birth *birth)
{
    uint32_t rate = w->options.rate_hz;

    w->sampler.period_ns = 1000000000u / rate;
    w->sampler.max_looks = LOOKS_HZ > rate ? LOOKS_HZ / rate : 1;
    w->time_ns =
        (int64_t)(birth ? birth->real_ns : cpprof__now_ns(CLOCK_REALTIME));
    w->start_ns = birth ? birth->mono_ns : cpprof__now_ns(CLOCK_MONOTONIC);
    w->sampler.start_ns = w->start_ns;
    store_relaxed(&cpprof__dump_depth[CPPROF__DUMP_WALL], w->options.max_depth);
}

static void
link_capture(struct cpprof__wall_ticker *w, struct cpprof__wall_capture *c)
{
    c->summary = cpprof__wall_ticker_summary(w, w->start_ns);
    c->summary.options.symbolize = c->options.symbolize;
    c->summary.options.flags = c->options.flags;
    c->start_ns = w->start_ns;
    c->next = w->captures;
    w->captures = c;
}

static void
count_from_start(struct cpprof__wall_ticker *w, struct cpprof__wall_capture *c)
{
    if (c->base.is_recorder) {
        cpprof__wall_keep_begin(&w->sampler.counts);
        return;
    }
    link_capture(w, c);
    c->summary.n_looks = c->summary.n_asked = 0;
}

/* With busy held; all is charged until now. */
static void
count_from(struct cpprof__wall_ticker *w, struct cpprof__wall_capture *c,
           uint64_t now)
{
    link_capture(w, c);
    c->summary.time_ns = (int64_t)cpprof__now_ns(CLOCK_REALTIME);
    c->start_ns = now;
}

/* Count no more; all is charged until then. To be called with busy held, or
 * without a ticker. */
static void
end_locked(struct cpprof__wall_ticker *w, struct cpprof__wall_capture *c,
           uint64_t now)
{
    struct cpprof__wall_capture **at = &w->captures;
    struct cpprof__wall_summary *sum = &c->summary;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    sum->duration_ns = (int64_t)(now - c->start_ns);
    sum->n_threads = w->sampler.n_threads_max;
    sum->n_looks = w->sampler.n_looks - sum->n_looks;
    sum->n_asked = w->sampler.n_asked - sum->n_asked;
    if (!cpprof__wall_counts_since(&w->sampler.counts, &c->before,
                                   c->options.flags, &c->since))
        c->failed = true;
}

/* ---- the sampler ------------------------------------------------------ */

static enum cpprof_status
start(struct cpprof_capture *first, struct cpprof_error *error)
{
    struct cpprof__wall_ticker *w = cpprof__calloc(1, sizeof *w);
    enum cpprof_status status;
    int failed = 0;

    if (!w)
        return cpprof__fail_nomem(error);
    w->options = wall(first)->options;
    status = cpprof__tasks_check(error);
    if (status == CPPROF_OK)
        status = cpprof__dump_start(error);
    set_up(w, first->birth);
    count_from_start(w, wall(first));
    if (status == CPPROF_OK)
        failed = cpprof__wall_ticker_start(w);
    if (failed)
        status = cpprof__fail(error, CPPROF_SYSTEM, failed,
                              "pthread_create: %s", strerror(failed));
    if (status != CPPROF_OK)
        free_wall(w);
    else
        ticker = w;
    return status;
}

static enum cpprof_status
begin_capture(struct cpprof_capture *c, struct cpprof_error *error)
{
    uint64_t now;
    bool begun;

    cpprof__interp_flush();
    cpprof__own_lock_take(&cpprof__wall_busy);
    now = cpprof__now_ns(CLOCK_MONOTONIC);
    cpprof__wall_sampler_charge(&ticker->sampler, now);
    begun = cpprof__wall_base_take(&wall(c)->before, &ticker->sampler.counts);
    if (begun)
        count_from(ticker, wall(c), now);
    cpprof__own_lock_give(&cpprof__wall_busy);
    return begun ? CPPROF_OK : cpprof__fail_nomem(error);
}

static void
end_capture(struct cpprof_capture *c)
{
    uint64_t now;

    cpprof__interp_flush();
    cpprof__own_lock_take(&cpprof__wall_busy);
    now = cpprof__now_ns(CLOCK_MONOTONIC);
    cpprof__wall_sampler_charge(&ticker->sampler, now);
    end_locked(ticker, wall(c), now);
    cpprof__own_lock_give(&cpprof__wall_busy);
}

static void
stop(void)
{
    struct cpprof__wall_ticker *w = ticker;
    uint64_t now;

    cpprof__interp_flush();
    cpprof__periodic_stop(&w->periodic);
    now = cpprof__now_ns(CLOCK_MONOTONIC);
    cpprof__wall_sampler_end(&w->sampler, now);
    while (w->captures)
        end_locked(w, w->captures, now);
    if (w->sampler.counts.is_kept)
        cpprof__wall_ticker_keep(w, now);
    ticker = NULL;
    free_wall(w);
}

static void
let_go(struct cpprof__wall_capture *c)
{
    cpprof__wall_base_free(&c->before);
    cpprof__wall_counts_free(&c->since);
}

static enum cpprof_status
write_profile(struct cpprof_capture *c, struct cpprof_error *error)
{
    const struct cpprof_writer writer = c->writer;

    if (wall(c)->failed) {
        cpprof__writer_refuse(&writer);
        return cpprof__fail_nomem(error);
    }
    if (c->needs_samples && !wall(c)->since.n && !wall(c)->since.lost_ns) {
        cpprof__writer_refuse(&writer);
        return CPPROF_OK;
    }
    return cpprof__wall_write(&wall(c)->since, &wall(c)->summary, writer,
                              error);
}

static void
free_capture(struct cpprof_capture *c)
{
    let_go(wall(c));
    cpprof__free(c);
}

static const struct cpprof__sampler_ops ops = {
    .name = "wall",
    .busy = "wall profiling already in use",
    .start = start,
    .begin = begin_capture,
    .end = end_capture,
    .stop = stop,
    .write = write_profile,
    .free = free_capture,
};

struct cpprof__life cpprof__wall_life = {.ops = &ops};

/* ---- the public calls ------------------------------------------------- */

enum cpprof_status
cpprof__wall_start(const struct cpprof_writer *writer,
                   const struct cpprof_wall_options *options,
                   const struct cpprof__birth *birth,
                   struct cpprof_error *error)
{
    struct cpprof_capture *c;
    enum cpprof_status status;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    status = cpprof__wall_capture_new(options, writer, &c, error);
    if (status != CPPROF_OK)
        return status;
    c->birth = birth;
    c->needs_samples = birth != NULL;
    return cpprof__default_start(c, error);
}

enum cpprof_status
cpprof_wall_start(const struct cpprof_writer *writer,
                  const struct cpprof_wall_options *options,
                  struct cpprof_error *error)
{
    return cpprof__wall_start(writer, options, NULL, error);
}

enum cpprof_status
cpprof_wall_start_to_path(const char *path,
                          const struct cpprof_wall_options *options,
                          struct cpprof_error *error)
{
    return CPPROF__TO_PATH(path, error,
                           cpprof_wall_start(&writer, options, error));
}

enum cpprof_status
cpprof__wall_record(const struct cpprof_wall_options *options,
                    const struct cpprof__birth *birth,
                    struct cpprof_error *error)
{
    struct cpprof_capture *c;
    enum cpprof_status status = make(options, NULL, &c, error);

    if (status != CPPROF_OK)
        return status;
    if (!(wall(c)->options.flags & CPPROF_FLAG_NO_LABELS))
        store_relaxed(&cpprof__wants_labels, 1); /* the tables' */
    c->birth = birth;
    return cpprof__default_start(c, error);
}

enum cpprof_status
cpprof_wall_stop(struct cpprof_error *error)
{
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    return cpprof__default_stop(&cpprof__wall_life, error);
}

bool
cpprof_wall_is_running(void)
{
    return cpprof__default_runs(&cpprof__wall_life);
}

/* ---- fork ------------------------------------------------------------- */

/* The ticker's thread is not here. What it had stays where it is: the allocator
 * may not be ready yet. */
CPPROF__FIRST_STEP void
cpprof__wall_in_child(void)
{
    ticker = NULL;
    cpprof__own_lock_in_child(&cpprof__wall_busy);
    cpprof__wall_keep_forked();
    cpprof__life_in_child(&cpprof__wall_life);
}
