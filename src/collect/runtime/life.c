/* SPDX-License-Identifier: MIT */
/*
 * The life of captures; life.h has the states and the locks.
 *
 * `run` numbers the starts of a sampler. A capture remembers the run that it
 * counts with, so ending one whose sampler has stopped meanwhile does nothing:
 * it was ended by the stop. A capture is written on an own thread, so that the
 * work is in no profile, and without a lock of the life, so that a slow writer
 * delays only its caller.
 *
 * Invariants: the sampler runs exactly while n_counting is not 0; a capture is
 * freed by whoever writes or drops it, once.
 */
#include "collect/runtime/life.h"

#include "arch/place.h"
#include "base/status.h"
#include "base/writer.h"
#include "collect/runtime/own_threads.h"
#include "collect/runtime/real.h"
#include "own/memory.h"

#include <stdlib.h>

/* ---- captures --------------------------------------------------------- */

void *
cpprof__capture_new(struct cpprof__life *life, size_t n_bytes,
                    const struct cpprof_writer *writer)
{
    struct cpprof_capture *c = cpprof__calloc(1, n_bytes);

    if (!c)
        return NULL;
    c->life = life;
    c->pid = (int32_t)getpid();
    c->is_recorder = !writer;
    if (writer)
        c->writer = *writer;
    c->is_path = writer && cpprof__writer_is_path(writer);
    return c;
}

void
cpprof__capture_drop(struct cpprof_capture *c)
{
    if (c->writer.close)
        c->writer.close(c->writer.ctx, 1);
    c->life->ops->free(c);
}

static enum cpprof_status
fail_busy(const struct cpprof__life *life, struct cpprof_error *error)
{
    return cpprof__fail(error, CPPROF_BUSY, 0, "%s", life->ops->busy);
}

static enum cpprof_status
begin(struct cpprof__life *life, struct cpprof_capture *c,
      struct cpprof_error *error)
{
    enum cpprof_status status;

    if (life->n_counting && life->ops->is_over && life->ops->is_over()) {
        life->ops->stop();
        life->n_counting = 0;
    }
    if (life->n_counting && c->is_recorder)
        return fail_busy(life, error);
    if (life->n_counting)
        status = life->ops->begin(c, error);
    else
        status = life->ops->start(c, error);
    if (status != CPPROF_OK)
        return status;
    if (!life->n_counting++)
        life->run++;
    c->run = life->run;
    return CPPROF_OK;
}

enum cpprof_status
cpprof__capture_begin(struct cpprof_capture *c, struct cpprof_error *error)
{
    struct cpprof__life *life = c->life;
    enum cpprof_status status;

    cpprof__use();
    cpprof__own_lock_take(&life->lock);
    status = cpprof__program_has_tsan()
                 ? cpprof__fail(error, CPPROF_UNSUPPORTED, 0, CPPROF__NO_TSAN)
                 : begin(life, c, error);
    cpprof__own_lock_give(&life->lock);
    if (status != CPPROF_OK)
        cpprof__capture_drop(c);
    return status;
}

/* One of a run that is over ended when the sampler stopped. */
void
cpprof__capture_end(struct cpprof_capture *c)
{
    struct cpprof__life *life = c->life;

    cpprof__own_lock_take(&life->lock);
    if (life->n_counting && c->run == life->run) {
        if (c->is_recorder || life->n_counting == 1) {
            life->ops->stop();
            life->n_counting = 0;
        } else {
            life->ops->end(c);
            life->n_counting--;
        }
    }
    cpprof__own_lock_give(&life->lock);
}

struct work {
    struct cpprof_capture *c;
    struct cpprof_error *error;
    enum cpprof_status status;
};

static void
write_capture(void *arg)
{
    struct work *work = arg;

    work->status = work->c->life->ops->write(work->c, work->error);
}

enum cpprof_status
cpprof__capture_write(struct cpprof_capture *c, struct cpprof_error *error)
{
    struct work work = {c, error, CPPROF_OK};

    if (!c->is_recorder)
        cpprof__own_thread_run(write_capture, &work);
    c->life->ops->free(c);
    return work.status;
}

/* ---- the default profile ---------------------------------------------- */

/* Who writes it may call these too, on a thread of ours or on its own, and
 * cannot wait for itself. */
static bool
take_default(struct cpprof__life *life, uint64_t until_ns)
{
    if (cpprof__own_lock_is_mine(&life->default_lock))
        return false;
    return cpprof__own_lock_take_until(&life->default_lock, until_ns);
}

static uint64_t
patience(void)
{
    return cpprof__own_thread_is_this() ? 0 : UINT64_MAX;
}

enum cpprof_status
cpprof__default_start(struct cpprof_capture *c, struct cpprof_error *error)
{
    struct cpprof__life *life = c->life;
    enum cpprof_status status;

    if (!take_default(life, patience())) {
        cpprof__capture_drop(c);
        return fail_busy(life, error);
    }
    if (life->default_profile) {
        cpprof__capture_drop(c);
        status = fail_busy(life, error);
    } else {
        status = cpprof__capture_begin(c, error);
        if (status == CPPROF_OK)
            store_release(&life->default_profile, c);
    }
    cpprof__own_lock_give(&life->default_lock);
    return status;
}

static enum cpprof_status
stop(struct cpprof__life *life, struct cpprof_error *error)
{
    struct cpprof_capture *c = life->default_profile;
    enum cpprof_status status = CPPROF_OK;

    if (c) {
        store_release(&life->default_profile, NULL);
        cpprof__capture_end(c);
        status = cpprof__capture_write(c, error);
    }
    cpprof__own_lock_give(&life->default_lock);
    return status;
}

enum cpprof_status
cpprof__default_stop(struct cpprof__life *life, struct cpprof_error *error)
{
    return take_default(life, patience()) ? stop(life, error) : CPPROF_OK;
}

static bool
is_writable(const struct cpprof__life *life)
{
    const struct cpprof_capture *c = life->default_profile;

    return !c || c->is_recorder || c->is_path;
}

enum cpprof_status
cpprof__default_exit(struct cpprof__life *life, uint64_t until_ns,
                     struct cpprof_error *error)
{
    if (!take_default(life, until_ns))
        return cpprof__fail(error, CPPROF_BUSY, 0,
                            "the %s profile takes too long: not written",
                            life->ops->name);
    if (is_writable(life))
        return stop(life, error);
    cpprof__own_lock_give(&life->default_lock);
    return cpprof__fail(error, CPPROF_INVALID, 0,
                        "the %s profile was not stopped: not written",
                        life->ops->name);
}

CPPROF__FIRST_STEP bool
cpprof__default_runs(const struct cpprof__life *life)
{
    const struct cpprof_capture *c = load_acquire(&life->default_profile);

    return c && c->pid == (int32_t)syscall(SYS_getpid);
}

/* ---- fork ------------------------------------------------------------- */

/* A handler of the program that forks may have interrupted its own start or
 * stop, which goes on in the child with what it has in hand. */
CPPROF__FIRST_STEP void
cpprof__life_in_child(struct cpprof__life *life)
{
    cpprof__own_lock_in_child(&life->lock);
    cpprof__own_lock_in_child(&life->default_lock);
    life->n_counting = 0;
    life->default_profile = NULL;
}
