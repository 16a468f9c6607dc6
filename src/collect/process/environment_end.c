/* SPDX-License-Identifier: MIT */
/*
 * CPPROF=heap,block,...: the profiles that are written when the process ends,
 * or recorded until then. A child made by fork goes on with the tables of its
 * parent. What a profiled process has made, by fork or exec, writes a profile
 * only if it has lived for a second and has added something to its tables.
 */
#include "collect/process/environment.h"

#include "arch/clock.h"
#include "arch/place.h"
#include "base/status.h"
#include "collect/heap/heap_owner.h"
#include "collect/leak/leak.h"
#include "collect/recording/recorded.h"
#include "collect/runtime/own_lock.h"
#include "collect/runtime/own_threads.h"
#include "collect/signal/heap/heap.h"
#include "collect/signal/tables/mirror.h"
#include "collect/signal/waits/wait_buckets.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Tunable. New stacks wait this long for their mappings, and a recorder for the
 * process to notice that it stopped. */
#define TICK_NS 200000000

/* A profile that is written at the end. */
struct end {
    uint32_t kind;
    const char *name;
    bool (*has_own)(void); /* has this process added something? NULL: there is
                              always something, but a child writes none */
};

static const struct cpprof__environment *environment; /* NULL: not started */
static char folder[PATH_MAX] CPPROF__LARGE;  /* the current one at the start */
static int32_t started_pid CPPROF__AT_START; /* 0: ended, or not started */
static uint64_t started_ns CPPROF__AT_START; /* by the monotonic clock */
static bool is_child CPPROF__AT_START;       /* made by fork */
static bool is_made CPPROF__AT_START;        /* so, or by exec */
static struct cpprof_heap *mappings;         /* followed with mmap=on */
static uint64_t n_sampled_at_fork;
static struct cpprof__own_lock end_lock CPPROF__AT_START;
static uint32_t is_stopping; /* futex: nobody looks after the tables */

static uint64_t
n_sampled(void)
{
    uint32_t i,
        n = cpprof__heap.head ? cpprof__heap_n_buckets(&cpprof__heap) : 0;
    uint64_t sum = 0;

    for (i = 0; i < n; i++)
        sum += load_relaxed(&cpprof__heap.buckets[i].n_sampled);
    return sum;
}

static bool
has_sampled(void)
{
    return n_sampled() != n_sampled_at_fork;
}

/* Waits begin anew in a child. */
static bool
has_blocked(void)
{
    return cpprof__waits_have_any(CPPROF__WAIT_BLOCK);
}

static bool
has_held(void)
{
    return cpprof__waits_have_any(CPPROF__WAIT_MUTEX);
}

static const struct end ends[] = {
    {.kind = CPPROF__KIND_HEAP, .name = "heap", .has_own = has_sampled},
    {.kind = CPPROF__KIND_MMAP, .name = "mmap", .has_own = has_sampled},
    {.kind = CPPROF__KIND_BLOCK, .name = "block", .has_own = has_blocked},
    {.kind = CPPROF__KIND_MUTEX, .name = "mutex", .has_own = has_held},
    {.kind = CPPROF__KIND_THREADS, .name = "goroutine"},
    {.kind = CPPROF__KIND_THREADCREATE, .name = "threadcreate"},
    {.kind = CPPROF__KIND_HEAPLEAK, .name = "heapleak"},
    {.kind = CPPROF__KIND_THREADLEAK, .name = "threadleak"},
};
#define N_ENDS (sizeof ends / sizeof *ends)

/* How the first process writes each; .write NULL: it was not opened. */
static struct cpprof_writer writers[N_ENDS];

static struct cpprof_writer *
writer_of(const struct end *end)
{
    return &writers[end - ends];
}

/* They are not in the tables that a recorder reads. */
static bool
asks_for_leaks(void)
{
    return environment->kinds & CPPROF__KIND_HEAPLEAK;
}

/* ---- writing ---------------------------------------------------------- */

static bool
has_lived(void)
{
    return cpprof__now_ns(CLOCK_MONOTONIC) - started_ns >=
           CPPROF__WRITES_AFTER_NS;
}

static bool
has_to_write(const struct end *end)
{
    if (!(environment->kinds & end->kind))
        return false;
    /* Of what a recorder runs; a shell makes that by exec. */
    if (*environment->directory)
        return end->kind == CPPROF__KIND_HEAPLEAK && !is_child;
    if (is_made && !has_lived())
        return false;
    return !is_made || (end->has_own ? end->has_own() : !is_child);
}

/* The file of a process that was made gets its name when there is something to
 * write. */
static enum cpprof_status
open_end(const struct end *end, struct cpprof_error *error)
{
    return cpprof__environment_open(environment, end->name,
                                    is_made ? folder : NULL, is_made,
                                    writer_of(end), error);
}

static enum cpprof_status
write_mmap(struct cpprof_writer writer, struct cpprof_error *error)
{
    struct cpprof_heap_options options = environment->heap;

    options.heap = mappings;
    return cpprof_heap_write(&writer, &options, error);
}

static enum cpprof_status
write_end(const struct end *end, struct cpprof_error *error)
{
    enum cpprof_status status =
        is_made || *environment->directory ? open_end(end, error) : CPPROF_OK;

    if (status != CPPROF_OK)
        return status;
    if (!writer_of(end)->write)
        return CPPROF_OK;
    if (end->kind == CPPROF__KIND_HEAPLEAK)
        cpprof__leaks_at_end();
    if (end->kind == CPPROF__KIND_HEAP)
        return cpprof_heap_write(writer_of(end), &environment->heap, error);
    if (end->kind == CPPROF__KIND_MMAP)
        return write_mmap(*writer_of(end), error);
    return cpprof_profile_write(cpprof_profile_lookup(end->name),
                                writer_of(end), &environment->others, error);
}

/* All of them, even if one fails. */
static enum cpprof_status
write_ends(struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    struct cpprof_error ignored;
    size_t i;

    for (i = 0; i < N_ENDS; i++) {
        enum cpprof_status one;

        if (!has_to_write(&ends[i]))
            continue;
        one = write_end(&ends[i], status == CPPROF_OK ? error : &ignored);
        if (status == CPPROF_OK)
            status = one;
    }
    return status;
}

/* ---- start ------------------------------------------------------------ */

/* Find the mappings of new stacks, and notice that the recorder stops. */
static bool
look_after_tables(void *arg)
{
    const struct timespec pause = {0, TICK_NS};

    (void)arg;
    while (cpprof__recorded_tick()) {
        if (cpprof__own_thread_must_leave())
            return true;
        syscall(SYS_futex, &is_stopping, FUTEX_WAIT, 0, &pause, NULL, 0);
        if (load_acquire(&is_stopping))
            break;
    }
    return false;
}

static enum cpprof_status
start_looking_after(struct cpprof_error *error)
{
    const struct cpprof__own_thread what = {
        .name = "cpprof", .run = look_after_tables, .wake = &is_stopping};
    int failed = cpprof__own_thread_start_detached(&what);

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

    /* If there is a CPU profile, its thread looks after the tables. */
    if (status != CPPROF_OK || environment->kinds & CPPROF__KIND_CPU)
        return status;
    return start_looking_after(error);
}

static void
close_all(void)
{
    size_t i;

    for (i = 0; i < N_ENDS; i++)
        if (writers[i].write)
            writers[i].close(writers[i].ctx, 1);
}

static enum cpprof_status
start_writing(struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    size_t i;

    if (!getcwd(folder, sizeof folder))
        strcpy(folder, "/");
    for (i = 0; i < N_ENDS && status == CPPROF_OK; i++)
        if (environment->kinds & ends[i].kind && !is_made &&
            !*environment->directory)
            status = open_end(&ends[i], error);
    if (status == CPPROF_OK && environment->kinds & CPPROF__KIND_MMAP)
        status = cpprof_heap_follow_mmap(&mappings, error);
    if (status != CPPROF_OK)
        close_all();
    return status;
}

static void
set_rates(const struct cpprof__environment *env)
{
    if (env->kinds & CPPROF__KIND_BLOCK)
        cpprof_block_set_rate(env->block_rate);
    if (env->kinds & CPPROF__KIND_MUTEX)
        cpprof_mutex_set_fraction((int)env->mutex_fraction);
}

enum cpprof_status
cpprof__environment_end_start(const struct cpprof__environment *env,
                              bool is_descendant, struct cpprof_error *error)
{
    enum cpprof_status status;

    environment = env;
    is_made = is_descendant;
    store_relaxed(&is_stopping, 0u);
    status = *env->directory ? start_recording(error) : CPPROF_OK;
    if (status == CPPROF_OK && (!*env->directory || asks_for_leaks()))
        status = start_writing(error);
    if (status != CPPROF_OK) {
        cpprof__heap_set_rate(0);
        return status;
    }
    set_rates(env);
    started_ns = cpprof__now_ns(CLOCK_MONOTONIC);
    started_pid = (int32_t)getpid();
    return CPPROF_OK;
}

CPPROF__FIRST_STEP void
cpprof__environment_end_in_child(void)
{
    cpprof__own_lock_in_child(&end_lock);
}

CPPROF__FIRST_STEP void
cpprof__environment_end_start_child(void)
{
    if (!started_pid)
        return;
    started_ns = cpprof__now_ns(CLOCK_MONOTONIC);
    started_pid = (int32_t)getpid();
    is_child = is_made = true;
    if (environment->kinds & CPPROF__KIND_HEAP)
        n_sampled_at_fork = n_sampled();
}

bool
cpprof__environment_end_may_come(void)
{
    return started_pid && started_pid == (int32_t)getpid();
}

void
cpprof__environment_end_forgo(void)
{
    started_pid = 0;
}

CPPROF__FIRST_STEP bool
cpprof__environment_end_is_due(void)
{
    size_t i;

    if (!cpprof__environment_end_may_come())
        return false;
    if (*environment->directory)
        return cpprof__mirror_head() != NULL;
    for (i = 0; i < N_ENDS; i++)
        if (has_to_write(&ends[i]))
            return true;
    return false;
}

void
cpprof__environment_end_recorded(bool with_timeout)
{
    if (cpprof__environment_end_is_due())
        cpprof__recorded_end(with_timeout);
}

static enum cpprof_status
end_locked(struct cpprof_error *error)
{
    enum cpprof_status status;

    if (!cpprof__environment_end_is_due())
        return CPPROF_OK;
    status = !*environment->directory || asks_for_leaks() ? write_ends(error)
                                                          : CPPROF_OK;
    if (*environment->directory)
        cpprof__recorded_end(false);
    else
        started_pid = 0;
    return status;
}

/* A process may end while it is detached: then the one waits for the other. */
enum cpprof_status
cpprof__environment_end(struct cpprof_error *error)
{
    enum cpprof_status status;

    cpprof__own_lock_take(&end_lock);
    status = end_locked(error);
    cpprof__own_lock_give(&end_lock);
    return status;
}

enum cpprof_status
cpprof__environment_end_stop(struct cpprof_error *error)
{
    enum cpprof_status status = cpprof__environment_end(error);
    size_t i;

    cpprof__recorded_stop(); /* before the copy says that nothing is on */
    cpprof__heap_set_rate(0);
    cpprof_block_set_rate(0);
    cpprof_mutex_set_fraction(0);
    store_release(&is_stopping, 1u);
    cpprof__futex_wake(&is_stopping);
    started_pid = 0;
    for (i = 0; i < N_ENDS; i++)
        writers[i] = (struct cpprof_writer){.size = 0};
    return status;
}
