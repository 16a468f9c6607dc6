/* SPDX-License-Identifier: MIT */
/*
 * A session starts its parts in this order: memory, engine, handler, drainer
 * thread, threads; and stops them in the opposite one. Only the state is
 * changed under the lock; what takes long (symbols, writing) happens between
 * the states, so that a fork never waits for it.
 */
#include "collect/cpu/session_internal.h"

#include "arch/atomic.h"
#include "base/status.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/loader.h"
#include "collect/runtime/own_threads.h"
#include "collect/runtime/uncancelled.h"
#include "collect/signal/sample/sampler.h"
#include "collect/signal/tables/interp_frames.h"
#include "collect/threads/action.h"
#include "collect/threads/threads.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct cpprof__session_life cpprof__session_life = {
    .change = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};

static struct cpprof__session_life *const life = &cpprof__session_life;
static uint32_t last_generation;

/* ---- start ------------------------------------------------------------ */

/* Fills in defaults. */
static enum cpprof_status
check_options(struct cpprof_cpu_options *checked, struct cpprof_error *error)
{
    if (!checked->rate_hz)
        checked->rate_hz = 100;
    if (!checked->max_depth)
        checked->max_depth = 128;
    if (checked->rate_hz > 10000)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "rate %u Hz is outside 1 to 10000",
                            checked->rate_hz);
    if (checked->max_depth > CPPROF__MAX_DEPTH)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "stack depth %u is outside 1 to %u",
                            checked->max_depth, CPPROF__MAX_DEPTH);
    if ((unsigned)checked->engine > CPPROF_ENGINE_ITIMER)
        return cpprof__fail(error, CPPROF_INVALID, 0, "unknown engine %d",
                            (int)checked->engine);
    if ((unsigned)checked->symbolize > CPPROF_SYMBOLIZE_NONE)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "unknown symbolization %d",
                            (int)checked->symbolize);
    if (checked->flags &
        ~(CPPROF_FLAG_NO_LABELS | CPPROF_FLAG_LEGACY | CPPROF_FLAG_NO_DECOYS))
        return cpprof__fail(error, CPPROF_INVALID, 0, "unknown flags 0x%x",
                            checked->flags);
    return CPPROF_OK;
}

static void
fill_head(struct cpprof__session *s)
{
    struct cpprof__spool_head *head = s->spool.head;

    head->rate_hz = s->plan.options.rate_hz;
    head->period_ns = 1000000000u / s->plan.options.rate_hz;
    snprintf(head->engine, sizeof head->engine, "%s", s->engine->name);
    head->user_only =
        s->engine == &cpprof__engine_perf && cpprof__perf_is_user_only();
    head->start_ns = cpprof__clock_ns(CLOCK_REALTIME);
    head->start_mono_ns = head->last_mono_ns =
        cpprof__clock_ns(CLOCK_MONOTONIC);
    s->cpu_start_ns = cpprof__program_cpu_ns();
    store_release(&head->state, (uint32_t)CPPROF__SPOOL_RUNNING);
}

static void
set_up_sampler(struct cpprof__session *s)
{
    struct cpprof__sampler *sampler = &cpprof__sampler;

    if (!++last_generation)
        last_generation = 1;
    sampler->max_depth = s->plan.options.max_depth;
    sampler->period_ns = s->spool.head->period_ns;
    sampler->labels = !(s->plan.options.flags & CPPROF_FLAG_NO_LABELS);
    store_relaxed(&sampler->generation, last_generation);
    __atomic_store_n(&sampler->ring, s->spool.ring, __ATOMIC_SEQ_CST);
}

static enum cpprof_status
start_sampling(struct cpprof__session *s, struct cpprof_error *error)
{
    struct cpprof__threads_plan plan;
    int failed;

    failed = cpprof__action_install();
    if (failed)
        return cpprof__fail(error, CPPROF_SYSTEM, failed, "sigaction: %s",
                            strerror(failed));
    cpprof__loader_refresh();
    failed = cpprof__session_start_drainer(s);
    if (failed)
        return cpprof__fail(error, CPPROF_SYSTEM, failed, "pthread_create: %s",
                            strerror(failed));
    set_up_sampler(s);
    plan.engine = s->engine;
    plan.period_ns = s->spool.head->period_ns;
    plan.generation = last_generation;
    cpprof__threads_begin(&plan, s->drainer_tid);
    store_relaxed(&s->spool.head->n_threads, cpprof__threads_seen());
    store_release(&s->started, true);
    return CPPROF_OK;
}

/* The session's memory, and its first capture, which may be NULL. */
static enum cpprof_status
prepare(struct cpprof__session *s, struct cpprof__cpu_capture *first,
        struct cpprof_error *error)
{
    enum cpprof_status status = cpprof__engine_choose(
        s->plan.options.engine, s->plan.options.rate_hz, &s->engine, error);

    if (status == CPPROF_OK)
        status = cpprof__spool_make(
            &s->spool, s->plan.directory,
            cpprof__spool_ring_words(s->plan.options.rate_hz,
                                     s->plan.options.max_depth),
            error);
    if (status != CPPROF_OK)
        return status;
    fill_head(s);
    cpprof__session_drain_begin(s);
    if (first && !cpprof__cpu_capture_begin(s, first, true))
        return cpprof__fail_nomem(error);
    return CPPROF_OK;
}

/* What is held on to by captures stays theirs. */
static void
free_session(struct cpprof__session *s, bool keep_files)
{
    cpprof__session_drain_free(s);
    if (s->shared) {
        if (load_acquire(&s->shared->n_holds) > 1)
            cpprof__shared_store_detach(s->shared,
                                        cpprof__spool_give_store(&s->spool));
        cpprof__shared_store_release(s->shared);
    }
    cpprof__spool_free(&s->spool, keep_files);
    free(s);
}

static enum cpprof_status
start(const struct cpprof__session_plan *plan,
      struct cpprof__cpu_capture *first, struct cpprof__session **out,
      struct cpprof_error *error)
{
    struct cpprof__session *s = calloc(1, sizeof *s);
    enum cpprof_status status;

    if (!s)
        return cpprof__fail_nomem(error);
    s->plan = *plan;
    status = prepare(s, first, error);
    if (status == CPPROF_OK)
        status = start_sampling(s, error);
    if (status == CPPROF_OK) {
        *out = s;
        return CPPROF_OK;
    }
    if (first) {
        first->is_counting = false;
        cpprof__cpu_capture_free(first);
    }
    free_session(s, false);
    return status;
}

static bool
change_state(enum cpprof__session_state *state, enum cpprof__session_state from,
             enum cpprof__session_state to)
{
    bool changed;

    pthread_mutex_lock(&life->lock);
    changed = *state == from;
    if (changed)
        *state = to;
    pthread_mutex_unlock(&life->lock);
    return changed;
}

/* With `change` held, where there is no session. */
static enum cpprof_status
begin(const struct cpprof__session_plan *plan,
      struct cpprof__cpu_capture *first,
      struct cpprof__default_profile *default_profile,
      struct cpprof_error *error)
{
    struct cpprof__session *s = NULL;
    enum cpprof_status status;

    if (!change_state(&life->state, CPPROF__SESSION_IDLE,
                      CPPROF__SESSION_STARTING))
        return cpprof__fail(error, CPPROF_BUSY, 0, "the process is ending");
    status = start(plan, first, &s, error);
    if (s) {
        pthread_mutex_lock(&s->drain_lock);
        s->default_profile = default_profile;
        pthread_mutex_unlock(&s->drain_lock);
    }
    pthread_mutex_lock(&life->lock);
    life->session = s;
    life->state =
        status == CPPROF_OK ? CPPROF__SESSION_RUNNING : CPPROF__SESSION_IDLE;
    pthread_mutex_unlock(&life->lock);
    return status;
}

/* ---- stop ------------------------------------------------------------- */

static void
finish(struct cpprof__session *s)
{
    bool keep;

    cpprof__interp_flush();
    store_release(&s->finish, true);
    cpprof__ring_wake(s->spool.ring);
    cpprof__own_thread_join(s->drainer, &s->was_alone);
    cpprof__session_end(s);
    sem_destroy(&s->drainer_is_up);
    /* An image that brought no sample leaves nothing to read, but for the
     * command's own: its profile is written whatever is in it. */
    keep = s->drain.n_records || cpprof__session_lost(s) ||
           cpprof__spool_is_of_command(&s->spool);
    pthread_mutex_lock(&life->lock);
    life->session = NULL; /* a fork from here on finds nothing to let go of */
    pthread_mutex_unlock(&life->lock);
    if (__atomic_load_n(&cpprof__sampler.n_inside, __ATOMIC_SEQ_CST))
        cpprof__session_drain_free(s); /* a handler hangs in there: let it have
                                        * the memory */
    else
        free_session(s, keep);
}

/* With `change` held. Nothing when the process ends in haste already. */
static void
end(void)
{
    if (!change_state(&life->state, CPPROF__SESSION_RUNNING,
                      CPPROF__SESSION_STOPPING))
        return;
    finish(life->session);
    change_state(&life->state, CPPROF__SESSION_STOPPING, CPPROF__SESSION_IDLE);
}

/* ---- captures --------------------------------------------------------- */

/* CPU time that blocked signals kept back is told before the stretch changes;
 * so are threads that are new, and stacks that wait for a script. */
static void
settle(const struct cpprof__session *s)
{
    if (load_acquire(&s->sampling_ended))
        return;
    cpprof__threads_scan(true);
    cpprof__interp_flush();
}

static enum cpprof_status
join(struct cpprof__session *s, struct cpprof__cpu_capture *c,
     struct cpprof__default_profile *default_profile,
     struct cpprof_error *error)
{
    bool joined;

    if (!(c->options.flags & CPPROF_FLAG_NO_LABELS))
        store_relaxed(&cpprof__sampler.labels, true);
    settle(s);
    pthread_mutex_lock(&s->drain_lock);
    joined = cpprof__cpu_capture_begin(s, c, false);
    if (joined && default_profile)
        s->default_profile = default_profile;
    pthread_mutex_unlock(&s->drain_lock);
    return joined ? CPPROF_OK : cpprof__fail_nomem(error);
}

static enum cpprof_status
enter(struct cpprof__cpu_capture *c,
      struct cpprof__default_profile *default_profile,
      struct cpprof_error *error)
{
    const struct cpprof__session_plan plan = {.options = c->options};
    enum cpprof_status status;

    pthread_mutex_lock(&life->change);
    if (life->session && load_acquire(&life->session->sampling_ended))
        end(); /* its recorder has left */
    if (life->session)
        status = join(life->session, c, default_profile, error);
    else
        status = begin(&plan, c, default_profile, error);
    pthread_mutex_unlock(&life->change);
    return status;
}

/* Is it the only one that the session is for? */
static bool
is_only(const struct cpprof__session *s, const struct cpprof__cpu_capture *c)
{
    return !s->plan.directory && s->captures == c && !c->next;
}

void
cpprof__session_end_capture(struct cpprof__cpu_capture *c)
{
    struct cpprof__session *s;
    bool only = false;

    pthread_mutex_lock(&life->change);
    s = life->session;
    if (s) {
        settle(s);
        pthread_mutex_lock(&s->drain_lock);
        only = is_only(s, c);
        if (!only && c->is_counting) {
            cpprof__session_drain_locked(s);
            cpprof__cpu_capture_end(s, c);
        }
        if (!only && s->default_profile && &s->default_profile->capture == c)
            s->default_profile = NULL;
        pthread_mutex_unlock(&s->drain_lock);
    }
    if (only)
        end();
    pthread_mutex_unlock(&life->change);
}

enum cpprof_status
cpprof__session_begin_capture(struct cpprof__cpu_capture *c,
                              struct cpprof_error *error)
{
    enum cpprof_status status = check_options(&c->options, error);

    return status == CPPROF_OK ? enter(c, NULL, error) : status;
}

/* ---- the ordinary profile --------------------------------------------- */

bool
cpprof__session_is_busy(void)
{
    return load_acquire(&life->default_profile) != CPPROF__SESSION_IDLE;
}

static struct cpprof__default_profile
    *default_profile; /* RUNNING; NULL: in files */

static void
close_failed(const struct cpprof_writer *writer)
{
    if (writer->close)
        writer->close(writer->ctx, 1);
}

static enum cpprof_status
start_in_files(const struct cpprof__session_plan *plan,
               struct cpprof_error *error)
{
    enum cpprof_status status;

    pthread_mutex_lock(&life->change);
    if (life->session)
        status =
            cpprof__fail(error, CPPROF_BUSY, 0, "cpu profiling already in use");
    else
        status = begin(plan, NULL, NULL, error);
    pthread_mutex_unlock(&life->change);
    return status;
}

static enum cpprof_status
start_default_profile(const struct cpprof__session_plan *plan,
                      struct cpprof_error *error)
{
    struct cpprof__default_profile *o = calloc(1, sizeof *o);
    enum cpprof_status status;

    if (!o)
        return cpprof__fail_nomem(error);
    o->capture.options = plan->options;
    o->capture.streams = true;
    o->out.writer = plan->writer;
    status = enter(&o->capture, o, error);
    if (status == CPPROF_OK)
        default_profile = o;
    else
        free(o);
    return status;
}

enum cpprof_status
cpprof__session_start(const struct cpprof__session_plan *wanted,
                      struct cpprof_error *error)
{
    struct cpprof__session_plan plan = *wanted;
    enum cpprof_status status;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    if (!change_state(&life->default_profile, CPPROF__SESSION_IDLE,
                      CPPROF__SESSION_STARTING)) {
        close_failed(&plan.writer);
        return cpprof__fail(error, CPPROF_BUSY, 0,
                            "cpu profiling already in use");
    }
    status = check_options(&plan.options, error);
    if (status == CPPROF_OK)
        status = plan.directory ? start_in_files(&plan, error)
                                : start_default_profile(&plan, error);
    if (status != CPPROF_OK)
        close_failed(&plan.writer);
    change_state(&life->default_profile, CPPROF__SESSION_STARTING,
                 status == CPPROF_OK ? CPPROF__SESSION_RUNNING
                                     : CPPROF__SESSION_IDLE);
    return status;
}

static enum cpprof_status
stop_default_profile(struct cpprof__default_profile *o,
                     struct cpprof_error *error)
{
    enum cpprof_status status;

    cpprof__session_end_capture(&o->capture);
    status = cpprof__cpu_output_write_apart(&o->out, &o->capture);
    if (status != CPPROF_OK && error)
        *error = o->out.error;
    free(o);
    return status;
}

static void
stop_in_files(void)
{
    pthread_mutex_lock(&life->change);
    if (life->session && life->session->plan.directory)
        end();
    pthread_mutex_unlock(&life->change);
}

enum cpprof_status
cpprof__session_stop(struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    struct cpprof__default_profile *o;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    if (!change_state(&life->default_profile, CPPROF__SESSION_RUNNING,
                      CPPROF__SESSION_STOPPING))
        return CPPROF_OK;
    o = default_profile;
    default_profile = NULL;
    if (o)
        status = stop_default_profile(o, error);
    else
        stop_in_files();
    change_state(&life->default_profile, CPPROF__SESSION_STOPPING,
                 CPPROF__SESSION_IDLE);
    return status;
}

bool
cpprof__session_is_ours(void)
{
    return life->state == CPPROF__SESSION_RUNNING && life->session &&
           life->session->spool.head->pid == (int32_t)syscall(SYS_getpid);
}

/* What was recorded is in its files already; only say that it is complete. */
static void
mark_ended(struct cpprof__session *s)
{
    store_relaxed(&s->spool.head->last_mono_ns,
                  cpprof__clock_ns(CLOCK_MONOTONIC));
    store_release(&s->spool.head->state, (uint32_t)CPPROF__SPOOL_ENDED);
}

void
cpprof__session_stop_with_timeout(unsigned seconds)
{
    struct timespec until;
    bool ours = false;

    if (pthread_mutex_trylock(&life->lock))
        return;
    if (cpprof__session_is_ours() && life->session->plan.directory) {
        mark_ended(life->session);
    } else if (cpprof__session_is_ours() && life->session->default_profile) {
        life->state = CPPROF__SESSION_STOPPING;
        life->session->writes = true;
        ours = true;
    }
    pthread_mutex_unlock(&life->lock);
    if (!ours)
        return;
    store_release(&life->session->finish, true);
    cpprof__ring_wake(life->session->spool.ring);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    if (pthread_timedjoin_np(life->session->drainer, NULL, &until) != ETIMEDOUT)
        cpprof__session_end(life->session);
}
