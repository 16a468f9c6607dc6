/* SPDX-License-Identifier: MIT */
#include "collect/wall/wall.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "base/options.h"
#include "base/status.h"
#include "collect/dump/dump.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/own_lock.h"
#include "collect/runtime/uncancelled.h"
#include "collect/signal/tables/interp_frames.h"
#include "collect/wall/wall_ticker.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define WALL_FLAGS                                                             \
    (CPPROF_FLAG_OFF_CPU | CPPROF_FLAG_NO_LABELS | CPPROF_FLAG_FGPROF |        \
     CPPROF_FLAG_COLLAPSED)

/* Tunables. Looks in a second: at some 0.5 us each, 0.2 % of a processor. More
 * gives many threads more samples. */
#define LOOKS_HZ 3200u

enum state { IDLE, STARTING, RUNNING, STOPPING };

static struct cpprof__own_lock lock; /* guards the three */
static enum state state;             /* of the ticker */
static enum state default_state;
static struct cpprof__wall_ticker *wall;

/* The profile of cpprof_wall_start(), while that is RUNNING. */
static struct default_profile {
    struct cpprof__wall_capture capture;
    struct cpprof_writer writer;
} * default_profile;

/* Held by who starts or ends the ticker, or has captures come and go. */
static pthread_mutex_t change = PTHREAD_MUTEX_INITIALIZER;

static bool lock_taken, busy_taken; /* for a fork */

/* ---- start ------------------------------------------------------------ */

enum cpprof_status
cpprof__wall_options(const struct cpprof_wall_options *given,
                     struct cpprof_wall_options *options,
                     struct cpprof_error *error)
{
    enum cpprof_status status;

    memset(options, 0, sizeof *options);
    status = cpprof__options(options, sizeof *options, given,
                             "cpprof_wall_options", error);
    if (status != CPPROF_OK)
        return status;
    if (!options->rate_hz)
        options->rate_hz = 100;
    if (!options->max_depth)
        options->max_depth = 128;
    if (options->rate_hz > 1000)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "rate %u Hz is outside 1 to 1000",
                            options->rate_hz);
    if (options->max_depth > CPPROF__MAX_DEPTH)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "stack depth %u is outside 1 to %u",
                            options->max_depth, CPPROF__MAX_DEPTH);
    if ((unsigned)options->symbolize > CPPROF_SYMBOLIZE_NONE)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "unknown symbolization %d",
                            (int)options->symbolize);
    if (options->flags & ~WALL_FLAGS)
        return cpprof__fail(error, CPPROF_INVALID, 0, "unknown flags 0x%x",
                            options->flags);
    return CPPROF_OK;
}

static void
free_wall(struct cpprof__wall_ticker *w)
{
    cpprof__wall_sampler_free(&w->sampler);
    free(w);
}

static void
set_up(struct cpprof__wall_ticker *w)
{
    uint32_t rate = w->options.rate_hz;

    w->sampler.period_ns = 1000000000u / rate;
    w->sampler.max_looks = LOOKS_HZ > rate ? LOOKS_HZ / rate : 1;
    w->time_ns = (int64_t)cpprof__now_ns(CLOCK_REALTIME);
    w->start_ns = cpprof__now_ns(CLOCK_MONOTONIC);
    w->random = w->start_ns | 1;
    store_relaxed(&cpprof__dump_depth[CPPROF__DUMP_WALL], w->options.max_depth);
}

static void
link_capture(struct cpprof__wall_ticker *w, struct cpprof__wall_capture *c)
{
    c->summary = cpprof__wall_ticker_summary(w);
    c->summary.options.symbolize = c->options.symbolize;
    c->summary.options.flags = c->options.flags;
    c->start_ns = w->start_ns;
    c->is_counting = true;
    c->next = w->captures;
    w->captures = c;
}

static void
count_from_start(struct cpprof__wall_ticker *w, struct cpprof__wall_capture *c)
{
    link_capture(w, c);
    c->summary.n_looks = c->summary.n_asked = 0;
}

/* With busy held. */
static void
count_from_now(struct cpprof__wall_ticker *w, struct cpprof__wall_capture *c)
{
    link_capture(w, c);
    c->summary.time_ns = (int64_t)cpprof__now_ns(CLOCK_REALTIME);
    c->start_ns = cpprof__now_ns(CLOCK_MONOTONIC);
}

/* With busy held, or without the ticker: count no more. */
static void
cut(struct cpprof__wall_ticker *w, struct cpprof__wall_capture *c)
{
    struct cpprof__wall_capture **at = &w->captures;
    struct cpprof__wall_summary *sum = &c->summary;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    c->is_counting = false;
    sum->duration_ns = (int64_t)(cpprof__now_ns(CLOCK_MONOTONIC) - c->start_ns);
    sum->n_threads = w->sampler.n_threads_max;
    sum->n_looks = w->sampler.n_looks - sum->n_looks;
    sum->n_asked = w->sampler.n_asked - sum->n_asked;
    c->failed = !cpprof__wall_counts_since(&w->sampler.counts, &c->base,
                                           c->options.flags, &c->since);
}

/* first: NULL for a recorder. */
static enum cpprof_status
start(const struct cpprof_wall_options *options,
      struct cpprof__wall_capture *first, struct cpprof__wall_ticker **out,
      struct cpprof_error *error)
{
    struct cpprof__wall_ticker *w = calloc(1, sizeof *w);
    enum cpprof_status status;
    int failed;

    if (!w)
        return cpprof__fail_nomem(error);
    w->options = *options;
    w->is_for_recorder = !first;
    status = cpprof__dump_start(error);
    set_up(w);
    if (first)
        count_from_start(w, first);
    else
        cpprof__wall_keep_begin(&w->sampler.counts);
    failed = status == CPPROF_OK ? cpprof__wall_ticker_start(w) : 0;
    if (failed)
        status = cpprof__fail(error, CPPROF_SYSTEM, failed,
                              "pthread_create: %s", strerror(failed));
    if (status != CPPROF_OK)
        free_wall(w);
    else
        *out = w;
    return status;
}

static bool
change_state(enum state *which, enum state from, enum state to)
{
    bool changed;

    cpprof__own_lock_take(&lock);
    changed = *which == from;
    if (changed)
        *which = to;
    cpprof__own_lock_give(&lock);
    return changed;
}

static void
set_state(enum state to, struct cpprof__wall_ticker *w)
{
    cpprof__own_lock_take(&lock);
    state = to;
    wall = w;
    cpprof__own_lock_give(&lock);
}

/* With `change` held, where there is no ticker. */
static enum cpprof_status
begin(const struct cpprof_wall_options *options,
      struct cpprof__wall_capture *first, struct cpprof_error *error)
{
    enum cpprof_status status;
    struct cpprof__wall_ticker *w = NULL;

    set_state(STARTING, NULL);
    status = start(options, first, &w, error);
    set_state(status == CPPROF_OK ? RUNNING : IDLE, w);
    return status;
}

/* ---- stop ------------------------------------------------------------- */

/* With `change` held. */
static void
end(void)
{
    struct cpprof__wall_ticker *w = wall;

    cpprof__interp_flush();
    change_state(&state, RUNNING, STOPPING);
    cpprof__wall_ticker_stop(w);
    cpprof__wall_sampler_end(&w->sampler);
    while (w->captures)
        cut(w, w->captures);
    if (w->sampler.counts.is_kept)
        cpprof__wall_ticker_keep(w);
    set_state(IDLE, NULL);
    free_wall(w);
}

/* ---- captures --------------------------------------------------------- */

static enum cpprof_status
join(struct cpprof__wall_ticker *w, struct cpprof__wall_capture *c,
     struct cpprof_error *error)
{
    bool joined;

    cpprof__interp_flush();
    cpprof__own_lock_take(&cpprof__wall_busy);
    cpprof__wall_sampler_charge(&w->sampler);
    joined = cpprof__wall_base_take(&c->base, &w->sampler.counts);
    if (joined)
        count_from_now(w, c);
    cpprof__own_lock_give(&cpprof__wall_busy);
    return joined ? CPPROF_OK : cpprof__fail_nomem(error);
}

enum cpprof_status
cpprof__wall_begin_capture(struct cpprof__wall_capture *c,
                           struct cpprof_error *error)
{
    enum cpprof_status status;

    pthread_mutex_lock(&change);
    status = wall ? join(wall, c, error) : begin(&c->options, c, error);
    pthread_mutex_unlock(&change);
    return status;
}

void
cpprof__wall_end_capture(struct cpprof__wall_capture *c)
{
    struct cpprof__wall_ticker *w;
    bool only = false;

    pthread_mutex_lock(&change);
    w = wall;
    if (w && c->is_counting) {
        cpprof__interp_flush();
        cpprof__own_lock_take(&cpprof__wall_busy);
        only = !w->is_for_recorder && w->captures == c && !c->next;
        if (!only) {
            cpprof__wall_sampler_charge(&w->sampler);
            cut(w, c);
        }
        cpprof__own_lock_give(&cpprof__wall_busy);
    }
    if (only)
        end();
    pthread_mutex_unlock(&change);
}

void
cpprof__wall_capture_free(struct cpprof__wall_capture *c)
{
    cpprof__wall_base_free(&c->base);
    cpprof__wall_counts_free(&c->since);
}

enum cpprof_status
cpprof__wall_capture_write(struct cpprof__wall_capture *c,
                           struct cpprof_writer writer,
                           struct cpprof_error *error)
{
    enum cpprof_status status;

    if (c->failed) {
        if (writer.close)
            writer.close(writer.ctx, 1);
        status = cpprof__fail_nomem(error);
    } else {
        status = cpprof__wall_write(&c->since, &c->summary, writer, error);
    }
    cpprof__wall_capture_free(c);
    return status;
}

/* ---- the ordinary profile --------------------------------------------- */

static enum cpprof_status
fail_busy(struct cpprof_error *error)
{
    return cpprof__fail(error, CPPROF_BUSY, 0, "wall profiling already in use");
}

static enum cpprof_status
start_default_profile(const struct cpprof_wall_options *options,
                      struct cpprof_writer writer, struct cpprof_error *error)
{
    struct default_profile *o = calloc(1, sizeof *o);
    enum cpprof_status status;

    if (!o)
        return cpprof__fail_nomem(error);
    o->capture.options = *options;
    o->writer = writer;
    status = cpprof__wall_begin_capture(&o->capture, error);
    if (status == CPPROF_OK)
        default_profile = o;
    else
        free(o);
    return status;
}

static enum cpprof_status
start_for_recorder(const struct cpprof_wall_options *options,
                   struct cpprof_error *error)
{
    enum cpprof_status status;

    pthread_mutex_lock(&change);
    status = wall ? fail_busy(error) : begin(options, NULL, error);
    pthread_mutex_unlock(&change);
    return status;
}

static enum cpprof_status
start_checked(const struct cpprof_wall_options *options,
              struct cpprof_writer writer, struct cpprof_error *error)
{
    enum cpprof_status status;

    if (!change_state(&default_state, IDLE, STARTING))
        return fail_busy(error);
    status = writer.write ? start_default_profile(options, writer, error)
                          : start_for_recorder(options, error);
    change_state(&default_state, STARTING,
                 status == CPPROF_OK ? RUNNING : IDLE);
    return status;
}

enum cpprof_status
cpprof_wall_start(struct cpprof_writer writer,
                  const struct cpprof_wall_options *given,
                  struct cpprof_error *error)
{
    struct cpprof_wall_options options;
    enum cpprof_status status;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    status = cpprof__wall_options(given, &options, error);
    if (status == CPPROF_OK && !writer.write)
        status = cpprof__fail(error, CPPROF_INVALID, 0,
                              "the writer has no write function");
    if (status == CPPROF_OK)
        status = start_checked(&options, writer, error);
    if (status != CPPROF_OK && writer.close)
        writer.close(writer.ctx, 1);
    return status;
}

enum cpprof_status
cpprof__wall_record(const struct cpprof_wall_options *given,
                    struct cpprof_error *error)
{
    struct cpprof_wall_options options;
    enum cpprof_status status = cpprof__wall_options(given, &options, error);

    if (status != CPPROF_OK)
        return status;
    if (!(options.flags & CPPROF_FLAG_NO_LABELS)) /* the tables are to tell */
        store_relaxed(&cpprof__wants_labels, 1);
    return start_checked(&options, (struct cpprof_writer){0}, error);
}

static enum cpprof_status
stop_default_profile(struct default_profile *o, struct cpprof_error *error)
{
    enum cpprof_status status;

    cpprof__wall_end_capture(&o->capture);
    status = cpprof__wall_capture_write(&o->capture, o->writer, error);
    free(o);
    return status;
}

static void
stop_for_recorder(void)
{
    pthread_mutex_lock(&change);
    if (wall && wall->is_for_recorder)
        end();
    pthread_mutex_unlock(&change);
}

enum cpprof_status
cpprof_wall_stop(struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    struct default_profile *o;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    if (!change_state(&default_state, RUNNING, STOPPING))
        return CPPROF_OK;
    o = default_profile;
    default_profile = NULL;
    if (o)
        status = stop_default_profile(o, error);
    else
        stop_for_recorder();
    change_state(&default_state, STOPPING, IDLE);
    return status;
}

/* ---- fork ------------------------------------------------------------- */

void
cpprof__wall_fork_prepare(void)
{
    busy_taken = cpprof__own_lock_take_for_fork(&cpprof__wall_busy);
    lock_taken = cpprof__own_lock_take_for_fork(&lock);
}

static void
give_locks(void)
{
    if (lock_taken)
        cpprof__own_lock_give(&lock);
    if (busy_taken)
        cpprof__own_lock_give(&cpprof__wall_busy);
}

void
cpprof__wall_fork_parent(void)
{
    give_locks();
}

/* The thread is not here; who was starting or stopping may be the one that is:
 * what it has is left to it. */
void
cpprof__wall_fork_child(void)
{
    if (state == RUNNING)
        free_wall(wall);
    cpprof__wall_keep_forked();
    wall = NULL;
    default_profile = NULL;
    state = default_state = IDLE;
    pthread_mutex_init(&change, NULL);
    give_locks();
}
