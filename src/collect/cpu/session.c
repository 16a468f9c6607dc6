/* SPDX-License-Identifier: MIT */
/*
 * The sampler of CPU time (life.h). A session starts its parts in this order:
 * memory, engine, handler, drainer thread, threads; and stops them in the
 * opposite one.
 */
#include "collect/cpu/session.h"

#include "collect/cpu/session_internal.h"
#include "own/memory.h"

#include "arch/atomic.h"
#include "arch/place.h"
#include "base/status.h"
#include "collect/runtime/loader.h"
#include "collect/runtime/own_threads.h"
#include "collect/signal/sample/sampler.h"
#include "collect/signal/tables/interp_frames.h"
#include "collect/threads/action.h"
#include "collect/threads/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct cpprof__session_current cpprof__session_current CPPROF__AT_START;

static struct cpprof__session_current *const current = &cpprof__session_current;
static uint32_t last_generation;

static struct cpprof__cpu_capture *
cpu(struct cpprof_capture *c)
{
    return (struct cpprof__cpu_capture *)c;
}

static void
set_current(struct cpprof__session *s)
{
    cpprof__own_lock_take(&current->lock);
    store_release(&current->session, s);
    cpprof__own_lock_give(&current->lock);
}

/* ---- start ------------------------------------------------------------ */

static void
fill_head(struct cpprof__session *s)
{
    struct cpprof__spool_head *head = s->spool.head;

    head->rate_hz = s->options.rate_hz;
    head->period_ns = 1000000000u / s->options.rate_hz;
    snprintf(head->engine, sizeof head->engine, "%s", s->engine->name);
    head->start_ns =
        s->birth ? s->birth->real_ns : cpprof__clock_ns(CLOCK_REALTIME);
    head->last_mono_ns = cpprof__clock_ns(CLOCK_MONOTONIC);
    head->start_mono_ns = s->birth ? s->birth->mono_ns : head->last_mono_ns;
    s->cpu_start_ns =
        s->birth ? s->birth->process_cpu_ns : cpprof__program_cpu_ns();
    store_release(&head->state, (uint32_t)CPPROF__SPOOL_RUNNING);
}

static void
set_up_sampler(struct cpprof__session *s)
{
    struct cpprof__sampler *sampler = &cpprof__sampler;

    if (!++last_generation)
        last_generation = 1;
    sampler->max_depth = s->options.max_depth;
    sampler->period_ns = s->spool.head->period_ns;
    sampler->labels = !(s->options.flags & CPPROF_FLAG_NO_LABELS);
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
                            cpprof__action_error(failed));
    cpprof__loader_refresh();
    failed = cpprof__session_start_drainer(s);
    if (failed)
        return cpprof__fail(error, CPPROF_SYSTEM, failed, "pthread_create: %s",
                            strerror(failed));
    set_up_sampler(s);
    plan.engine = s->engine;
    plan.period_ns = s->spool.head->period_ns;
    plan.generation = last_generation;
    plan.birth = s->birth;
    cpprof__threads_begin(&plan);
    store_relaxed(&s->spool.head->n_threads, cpprof__threads_seen());
    store_release(&s->started, true);
    return CPPROF_OK;
}

/* Make the session's memory, and what its first capture has of it. */
static enum cpprof_status
prepare(struct cpprof__session *s, struct cpprof__cpu_capture *first,
        struct cpprof_error *error)
{
    enum cpprof_status status = cpprof__engine_choose(
        s->options.engine, s->options.rate_hz, &s->engine, error);

    if (status == CPPROF_OK)
        status = cpprof__spool_make(
            &s->spool, s->directory,
            cpprof__spool_ring_words(s->options.rate_hz, s->options.max_depth),
            error);
    if (status != CPPROF_OK)
        return status;
    fill_head(s);
    cpprof__session_drain_begin(s);
    if (!s->directory && !cpprof__cpu_capture_begin(s, first, true))
        return cpprof__fail_nomem(error);
    return CPPROF_OK;
}

/* What captures hold stays theirs. */
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
    cpprof__free(s);
}

static enum cpprof_status
start(struct cpprof_capture *c, struct cpprof_error *error)
{
    struct cpprof__session *s = cpprof__calloc(1, sizeof *s);
    enum cpprof_status status;

    if (!s)
        return cpprof__fail_nomem(error);
    s->options = cpu(c)->options;
    s->directory = cpu(c)->directory;
    s->birth = c->birth;
    s->at_scan = cpu(c)->at_scan;
    s->names_threads = cpu(c)->names_threads;
    status = prepare(s, cpu(c), error);
    if (status == CPPROF_OK)
        status = start_sampling(s, error);
    if (status == CPPROF_OK) {
        set_current(s);
        return CPPROF_OK;
    }
    cpu(c)->is_counting = false;
    cpprof__cpu_capture_let_go(cpu(c));
    free_session(s, false);
    return status;
}

/* ---- stop ------------------------------------------------------------- */

/* Is the file kept? An image without a sample leaves none, except the recorded
 * command itself: its profile is written even if it is empty. */
static bool
has_to_stay(const struct cpprof__session *s)
{
    return s->drain.n_records || cpprof__session_lost(s) ||
           cpprof__spool_is_of_command(&s->spool);
}

/* If a handler is stuck in the session's memory, the memory is left to it. */
static void
stop(void)
{
    struct cpprof__session *s = current->session;

    set_current(NULL);
    cpprof__interp_flush();
    store_release(&s->finish, true);
    cpprof__ring_wake(s->spool.ring);
    cpprof__own_thread_join(&s->drainer, UINT64_MAX);
    cpprof__session_end_sampling(s);
    sem_destroy(&s->drainer_is_up);
    if (__atomic_load_n(&cpprof__sampler.n_inside, __ATOMIC_SEQ_CST))
        cpprof__session_drain_free(s);
    else
        free_session(s, has_to_stay(s));
}

/* ---- captures --------------------------------------------------------- */

/* Charge pending CPU time (blocked signals, new threads, deferred stacks)
 * before the set of captures changes. */
static void
charge_pending(const struct cpprof__session *s)
{
    if (load_acquire(&s->sampling_ended))
        return;
    cpprof__threads_scan(true);
    cpprof__interp_flush();
}

static bool
is_over(void)
{
    return load_acquire(&current->session->sampling_ended);
}

static enum cpprof_status
begin_capture(struct cpprof_capture *c, struct cpprof_error *error)
{
    struct cpprof__session *s = current->session;
    bool begun;

    if (!(cpu(c)->options.flags & CPPROF_FLAG_NO_LABELS))
        store_relaxed(&cpprof__sampler.labels, true);
    charge_pending(s);
    cpprof__own_lock_take(&s->drain_lock);
    begun = cpprof__cpu_capture_begin(s, cpu(c), false);
    cpprof__own_lock_give(&s->drain_lock);
    return begun ? CPPROF_OK : cpprof__fail_nomem(error);
}

static void
end_capture(struct cpprof_capture *c)
{
    struct cpprof__session *s = current->session;

    charge_pending(s);
    cpprof__own_lock_take(&s->drain_lock);
    if (cpu(c)->is_counting) {
        cpprof__session_drain_locked(s);
        cpprof__cpu_capture_end(s, cpu(c));
    }
    cpprof__own_lock_give(&s->drain_lock);
}

static enum cpprof_status
write_profile(struct cpprof_capture *c, struct cpprof_error *error)
{
    return cpprof__cpu_capture_write(cpu(c), error);
}

static void
free_capture(struct cpprof_capture *c)
{
    cpprof__cpu_capture_let_go(cpu(c));
    cpprof__free(c);
}

static const struct cpprof__sampler_ops ops = {
    .name = "cpu",
    .busy = "cpu profiling already in use",
    .is_over = is_over,
    .start = start,
    .begin = begin_capture,
    .end = end_capture,
    .stop = stop,
    .write = write_profile,
    .free = free_capture,
};

struct cpprof__life cpprof__cpu_life = {.ops = &ops};

/* ---- _exit ------------------------------------------------------------ */

/* Is there a session, and is it this process's? A vfork child has the memory of
 * its parent and another pid. Safety: AS. */
static bool
is_ours(void)
{
    const struct cpprof__session *s = load_acquire(&current->session);

    return s && s->spool.head->pid == (int32_t)syscall(SYS_getpid);
}

bool
cpprof__session_has_samples(void)
{
    const struct cpprof__session *s = current->session;

    return s && load_relaxed(&s->spool.ring->head);
}

void
cpprof__session_mark_ended(void)
{
    struct cpprof__spool_head *head;

    if (!is_ours() || !current->session->directory)
        return;
    head = current->session->spool.head;
    store_relaxed(&head->last_mono_ns, cpprof__clock_ns(CLOCK_MONOTONIC));
    store_release(&head->state, (uint32_t)CPPROF__SPOOL_ENDED);
}

bool
cpprof__session_end_by(void (*f)(void))
{
    struct cpprof__session *s = current->session;

    if (!is_ours() || load_acquire(&s->drainer.is_over) ||
        cpprof__own_threads_pause_now())
        return false;
    s->last = f;
    store_release(&s->finish, true);
    cpprof__ring_wake(s->spool.ring);
    return true;
}
