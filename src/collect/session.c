/* SPDX-License-Identifier: MIT */
/*
 * A session starts its parts in this order: memory, engine, handler, drainer
 * thread, threads; and stops them in the opposite one. Only the state is
 * changed under the lock; what takes long (symbols, writing) happens between
 * the states, so that a fork never waits for it.
 */
#include "collect/session_internal.h"

#include "arch/atomic.h"
#include "base/status.h"
#include "collect/action.h"
#include "collect/exempt.h"
#include "collect/signal/sampler.h"
#include "collect/threads.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct cpprof__session_life cpprof__session_life = {
    .lock = PTHREAD_MUTEX_INITIALIZER};

static struct cpprof__session_life *const life = &cpprof__session_life;
static uint32_t last_generation;

/* ---- start ------------------------------------------------------------ */

static enum cpprof_status
check_options(const struct cpprof_cpu_options *options,
              struct cpprof_cpu_options *checked, struct cpprof_error *error)
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
        ~(CPPROF_CPU_NO_LABELS | CPPROF_CPU_LEGACY | CPPROF_CPU_NO_DECOYS))
        return cpprof__fail(error, CPPROF_INVALID, 0, "unknown flags 0x%x",
                            checked->flags);
    (void)options;
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
    s->cpu_start_ns = cpprof__clock_ns(CLOCK_PROCESS_CPUTIME_ID);
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
    sampler->labels = !(s->plan.options.flags & CPPROF_CPU_NO_LABELS);
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
    cpprof__session_refresh_modules();
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

static enum cpprof_status
start(const struct cpprof__session_plan *plan, struct cpprof__session **out,
      struct cpprof_error *error)
{
    struct cpprof__session *s = calloc(1, sizeof *s);
    enum cpprof_status status;

    if (!s)
        return cpprof__fail_nomem(error);
    s->plan = *plan;
    status = check_options(&plan->options, &s->plan.options, error);
    if (status == CPPROF_OK)
        status = cpprof__engine_choose(
            s->plan.options.engine, s->plan.options.rate_hz, &s->engine, error);
    if (status == CPPROF_OK)
        status = cpprof__spool_make(
            &s->spool, plan->directory,
            cpprof__spool_ring_words(s->plan.options.rate_hz,
                                     s->plan.options.max_depth),
            error);
    if (status == CPPROF_OK) {
        fill_head(s);
        cpprof__session_drain_begin(s);
        status = start_sampling(s, error);
    }
    if (status != CPPROF_OK) {
        cpprof__session_drain_free(s);
        cpprof__spool_free(&s->spool, false);
        free(s);
        return status;
    }
    *out = s;
    return CPPROF_OK;
}

static bool
change_state(enum cpprof__session_state from, enum cpprof__session_state to)
{
    bool changed;

    pthread_mutex_lock(&life->lock);
    changed = life->state == from;
    if (changed)
        life->state = to;
    pthread_mutex_unlock(&life->lock);
    return changed;
}

static void
close_failed(const struct cpprof_writer *writer)
{
    if (writer->close)
        writer->close(writer->ctx, 1);
}

enum cpprof_status
cpprof__session_start(const struct cpprof__session_plan *plan,
                      struct cpprof_error *error)
{
    enum cpprof_status status;
    struct cpprof__session *s = NULL;
    CPPROF__EXEMPT;

    if (!change_state(CPPROF__SESSION_IDLE, CPPROF__SESSION_STARTING)) {
        close_failed(&plan->writer);
        return cpprof__fail(error, CPPROF_BUSY, 0,
                            "cpu profiling already in use");
    }
    status = start(plan, &s, error);
    if (status != CPPROF_OK)
        close_failed(&plan->writer);
    pthread_mutex_lock(&life->lock);
    life->session = s;
    life->state =
        status == CPPROF_OK ? CPPROF__SESSION_RUNNING : CPPROF__SESSION_IDLE;
    pthread_mutex_unlock(&life->lock);
    return status;
}

/* ---- stop ------------------------------------------------------------- */

static enum cpprof_status
finish(struct cpprof__session *s, struct cpprof_error *error)
{
    enum cpprof_status status;
    bool keep;

    store_release(&s->finish, true);
    cpprof__ring_wake(s->spool.ring);
    /* EDEADLK: this is the drainer, in exit(). */
    pthread_join(s->drainer, NULL);
    cpprof__session_end(s);
    sem_destroy(&s->drainer_is_up);
    cpprof__session_drain_free(s);
    status = s->failed;
    if (status != CPPROF_OK && error)
        *error = s->error;
    /* An image that brought no sample leaves nothing to read, but for the
     * command's own: its profile is written whatever is in it. */
    keep = s->drain.n_records || cpprof__session_lost(s) ||
           cpprof__spool_is_of_command(&s->spool);
    pthread_mutex_lock(&life->lock);
    life->session = NULL; /* a fork from here on finds nothing to let go of */
    pthread_mutex_unlock(&life->lock);
    if (__atomic_load_n(&cpprof__sampler.n_inside, __ATOMIC_SEQ_CST))
        return status; /* a handler hangs in there: let it have the memory */
    cpprof__spool_free(&s->spool, keep);
    free(s);
    return status;
}

enum cpprof_status
cpprof__session_stop(struct cpprof_error *error)
{
    enum cpprof_status status;
    CPPROF__EXEMPT;

    if (!change_state(CPPROF__SESSION_RUNNING, CPPROF__SESSION_STOPPING))
        return CPPROF_OK;
    status = finish(life->session, error);
    pthread_mutex_lock(&life->lock);
    life->state = CPPROF__SESSION_IDLE;
    pthread_mutex_unlock(&life->lock);
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
cpprof__session_stop_hastily(unsigned seconds)
{
    struct timespec until;
    bool ours = false;

    if (pthread_mutex_trylock(&life->lock))
        return;
    if (cpprof__session_is_ours() && life->session->plan.directory) {
        mark_ended(life->session);
    } else if (cpprof__session_is_ours()) {
        life->state = CPPROF__SESSION_STOPPING;
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
