/* SPDX-License-Identifier: MIT */
/*
 * CPPROF=heap: recorded, or written at the end of the process. A child made by
 * fork goes on with the tables of its parent, and has something to tell once
 * it sampled an allocation itself.
 */
#include "collect/environment.h"

#include "base/status.h"
#include "collect/heap_owner.h"
#include "collect/keeper.h"
#include "collect/recorded.h"
#include "collect/signal/heap.h"

#include <string.h>
#include <unistd.h>

/* How long _exit() may wait for the profile to be written. */
#define HASTE_SECONDS 10

static const struct cpprof__environment *environment; /* NULL: not started */
static struct cpprof_writer writer; /* of the first process; .write NULL */
static char folder[PATH_MAX];       /* the current one at the start */
static int32_t started_pid;         /* 0: ended, or not started */
static bool is_child;
static uint64_t n_at_fork; /* sampled before this process was made */

static uint64_t
n_sampled(void)
{
    uint32_t i, n = load_acquire(&cpprof__heap.head->n_buckets);
    uint64_t sum = 0;

    for (i = 0; i < n && i < CPPROF__HEAP_BUCKETS; i++)
        sum += load_relaxed(&cpprof__heap.buckets[i].n_sampled);
    return sum;
}

/* Where a child writes is known when it has something to write. */
static enum cpprof_status
open_child(struct cpprof_error *error)
{
    return cpprof__environment_open(environment, "heap", folder, true, &writer,
                                    error);
}

static enum cpprof_status
write_profile(struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;

    if (is_child && n_sampled() == n_at_fork)
        return CPPROF_OK;
    if (is_child)
        status = open_child(error);
    return status == CPPROF_OK
               ? cpprof_write_heap_profile(writer, &environment->heap, error)
               : status;
}

static void
last(void)
{
    struct cpprof_error error;

    write_profile(&error);
}

static enum cpprof_status
start_keeper(bool (*tick)(void), void (*at_end)(void),
             struct cpprof_error *error)
{
    const struct cpprof__keeper_plan plan = {tick, at_end};
    int failed = cpprof__keeper_start(&plan);

    return failed ? cpprof__fail(error, CPPROF_SYSTEM, failed,
                                 "pthread_create: %s", strerror(failed))
                  : CPPROF_OK;
}

static enum cpprof_status
start_recording(struct cpprof_error *error)
{
    char name[256];
    enum cpprof_status status = cpprof__recorded_start(
        environment->directory, cpprof__heap_owner(name, sizeof name), error);

    /* Beside a CPU profile, its thread sees to the tables. */
    if (status != CPPROF_OK || environment->kinds & CPPROF__KIND_CPU)
        return status;
    return start_keeper(cpprof__recorded_tick, NULL, error);
}

static enum cpprof_status
start_writing(bool is_descendant, struct cpprof_error *error)
{
    enum cpprof_status status;

    if (!getcwd(folder, sizeof folder))
        strcpy(folder, "/");
    status = cpprof__environment_open(environment, "heap", NULL, is_descendant,
                                      &writer, error);
    if (status != CPPROF_OK)
        return status;
    status = start_keeper(NULL, last, error);
    if (status != CPPROF_OK)
        writer.close(writer.ctx, 1);
    return status;
}

enum cpprof_status
cpprof__environment_heap_start(const struct cpprof__environment *env,
                               bool is_descendant, struct cpprof_error *error)
{
    enum cpprof_status status;

    environment = env;
    status = *env->directory ? start_recording(error)
                             : start_writing(is_descendant, error);
    if (status == CPPROF_OK)
        started_pid = (int32_t)getpid();
    else
        cpprof__heap_set_rate(0);
    return status;
}

/* A recorded child costs nothing until it samples: it has no thread. */
void
cpprof__environment_heap_start_child(void)
{
    struct cpprof_error error;

    if (!started_pid)
        return;
    started_pid = (int32_t)getpid();
    is_child = true;
    n_at_fork = n_sampled();
    cpprof__keeper_forget();
    if (!*environment->directory)
        start_keeper(NULL, last, &error);
}

enum cpprof_status
cpprof__environment_heap_stop(bool hastily, struct cpprof_error *error)
{
    if (!started_pid || started_pid != (int32_t)getpid())
        return CPPROF_OK;
    if (*environment->directory) {
        cpprof__recorded_end(hastily);
        return CPPROF_OK;
    }
    started_pid = 0;
    if (hastily || is_child) {
        cpprof__keeper_finish(HASTE_SECONDS);
        return CPPROF_OK;
    }
    return write_profile(error);
}
