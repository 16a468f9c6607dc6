/* SPDX-License-Identifier: MIT */
/*
 * The life of a profile of interpreted code: checks the options, starts the
 * thread that writes and the one that ticks, stops both, and what a fork does
 * to them.
 *
 * Samples are counted by the interpreters' own threads (count.c) as long as the
 * session's epoch is theirs; there is no list of participants. Starting sets a
 * new epoch after everything is in place. Stopping clears it first, so that no
 * new sample comes, then waits for the threads, then writes the rest.
 *
 * Lock order: `control` (one start or stop at a time), then the list of
 * threads, then the session's lock. The thread that stops charges its own time
 * before it takes any of them.
 */
#include "vm/profile/session.h"

#include "arch/place.h"
#include "base/options.h"
#include "base/status.h"
#include "base/writer.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/uncancelled.h"
#include "own/memory.h"
#include "vm/profile/count.h"
#include "vm/profile/output.h"
#include "vm/profile/sample.h"
#include "vm/profile/ticker.h"
#include "vm/profile/timers.h"
#include "vm/stacks/interp_frames.h"

#include <stdlib.h>
#include <string.h>

/* How often queued records are written; sooner when the queue fills up. */
#define WRITE_NS 100000000u
/* How often, in mode SPAN, interpreters check that their hooks are in place. */
#define SPAN_TICK_NS 100000000u

struct cpprof__vm_session cpprof__vm_session;
static struct cpprof__vm_session *const session = &cpprof__vm_session;

struct capture {
    struct cpprof_capture base;
    struct cpprof_vm_options options;
};

/* The profile that runs or is being written. There is one at a time: life.h
 * sees to that. */
static struct {
    uint32_t epoch; /* of this profile, or of the last one */
    uint64_t start_ns, end_ns;
    struct cpprof_vm_options options;
    struct cpprof__vm_output output; /* the writer's, while it runs */
    struct cpprof__periodic writer;
    struct cpprof__periodic ticker;
    bool has_ticker;
} now;
static bool has_begun; /* one, ever */

/* ---- the writer ------------------------------------------------------- */

static void
write_some(struct cpprof__periodic *worker)
{
    const uint8_t *data;
    uint64_t lost_ns;
    size_t n;

    store_release(&cpprof__vm_writer_wake, 0u);
    cpprof__own_lock_take(&session->lock);
    data = cpprof__vm_queue_take(&session->queue, &n);
    lost_ns = session->lost_ns;
    session->lost_ns = 0;
    cpprof__own_lock_give(&session->lock);
    cpprof__vm_output_records(&now.output, data, n);
    cpprof__vm_output_own(&now.output, CPPROF__FRAME_LOST, lost_ns);
    cpprof__vm_timers_drain(&now.output);
}

/* ---- start ------------------------------------------------------------ */

static enum cpprof_status
read_options(const struct cpprof_vm_options *given,
             struct cpprof_vm_options *options, struct cpprof_error *error)
{
    enum cpprof_status status;

    memset(options, 0, sizeof *options);
    status = cpprof__options(options, sizeof *options, given,
                             "cpprof_vm_options", error);
    if (status == CPPROF_OK && (unsigned)options->mode > CPPROF_VM_MODE_CPU)
        status = cpprof__fail(error, CPPROF_INVALID, 0, "no such mode: %d",
                              (int)options->mode);
    if (status == CPPROF_OK)
        status = cpprof__options_sampling(&options->rate_hz, 10000,
                                          &options->max_depth,
                                          CPPROF__MAX_DEPTH, error);
    return status == CPPROF_OK
               ? cpprof__options_flags(options->flags, CPPROF_FLAG_MERGE,
                                       CPPROF_SYMBOLIZE_FULL, error)
               : status;
}

/* From here on samples come. */
static void
open_session(void)
{
    bool is_cpu = now.options.mode == CPPROF_VM_MODE_CPU;
    uint32_t epoch = now.epoch + 1 ? now.epoch + 1 : 1;
    struct cpprof__vm_thread *t;

    now.epoch = epoch;
    cpprof__vm_take_orphans();
    cpprof__vm_take_unknown();
    cpprof__own_lock_take(&cpprof__vm_threads_lock);
    cpprof__own_lock_take(&session->lock);
    store_relaxed(&cpprof__vm_mode, (uint32_t)now.options.mode);
    store_relaxed(&cpprof__vm_quantum_ns,
                  (uint64_t)1000000000u / now.options.rate_hz);
    store_relaxed(&cpprof__vm_only, (const struct cpprof_vm *)now.options.vm);
    session->max_depth = now.options.max_depth;
    session->lost_ns = 0;
    session->silent_ns = 0;
    session->epoch = epoch;
    now.start_ns = cpprof__now_ns(CLOCK_MONOTONIC);
    /* Threads that are entered now count from the start of the session. */
    for (t = cpprof__vm_threads; t && !is_cpu; t = t->next) {
        if (!load_relaxed(&t->is_entered))
            continue;
        store_relaxed(&t->base_ns, now.start_ns);
        store_relaxed(&t->base_epoch, epoch);
    }
    store_release(&cpprof__vm_active, epoch);
    if (is_cpu)
        cpprof__vm_timers_open(epoch);
    store_release(now.options.mode == CPPROF_VM_MODE_SPAN
                      ? &cpprof__vm_running.spans
                      : &cpprof__vm_running.ticks,
                  epoch);
    cpprof__own_lock_give(&session->lock);
    cpprof__own_lock_give(&cpprof__vm_threads_lock);
    /* Some interpreters hook calls only while there is a profile: tell them. */
    if (now.options.mode == CPPROF_VM_MODE_SPAN)
        cpprof__vm_tick(NULL);
}

/* In mode SPAN: does any interpreter want ticks? */
static bool
wants_ticks(void)
{
    const struct cpprof_vm *vm = now.options.vm;

    if (now.options.mode != CPPROF_VM_MODE_SPAN)
        return true;
    if (vm)
        return vm->ops.flags & CPPROF_VM_FINDS;
    for (vm = cpprof__vm_first(); vm; vm = vm->next)
        if (vm->ops.flags & CPPROF_VM_FINDS)
            return true;
    return false;
}

static int
start_workers(void)
{
    int failed;

    now.writer = (struct cpprof__periodic){.name = "cpprof-vm-out",
                                           .turn = write_some,
                                           .period_ns = WRITE_NS,
                                           .wake = &cpprof__vm_writer_wake};
    now.ticker = (struct cpprof__periodic){.name = "cpprof-vm-tick",
                                           .turn = cpprof__vm_tick,
                                           .period_ns = 1000000000u /
                                                        now.options.rate_hz};
    if (now.options.mode == CPPROF_VM_MODE_CPU)
        cpprof__vm_timers_begin(now.ticker.period_ns, now.options.max_depth);
    if (now.options.mode == CPPROF_VM_MODE_SPAN)
        now.ticker.period_ns = SPAN_TICK_NS;
    failed = cpprof__periodic_start(&now.writer);
    now.has_ticker = !failed && wants_ticks();
    if (!now.has_ticker)
        return failed;
    failed = cpprof__periodic_start(&now.ticker);
    if (failed)
        cpprof__periodic_stop(&now.writer);
    return failed;
}

static void
free_session(void)
{
    struct cpprof__vm_scratch *scratch = session->scratches;

    while (scratch) {
        struct cpprof__vm_scratch *next = scratch->next;

        cpprof__free(scratch);
        scratch = next;
    }
    session->scratches = NULL;
    cpprof__vm_table_clear(&session->table);
    cpprof__vm_queue_free(&session->queue);
    cpprof__vm_timers_free();
    session->has_to_forget = false;
}

static enum cpprof_status
start(struct cpprof_capture *c, struct cpprof_error *error)
{
    const struct cpprof_writer writer = c->writer;
    enum cpprof_status status;
    int failed;

    has_begun = true;
    now.options = ((struct capture *)c)->options;
    c->writer = (struct cpprof_writer){0}; /* from here on the output's */
    status = cpprof__vm_output_make(&now.output, writer, &now.options, error);
    if (status != CPPROF_OK)
        return status;
    if (!cpprof__vm_queue_make(&session->queue))
        status = cpprof__fail_nomem(error);
    else if ((failed = start_workers()))
        status = cpprof__fail(error, CPPROF_SYSTEM, failed, "thread: %s",
                              strerror(failed));
    if (status == CPPROF_OK) {
        open_session();
    } else {
        free_session();
        cpprof__vm_output_give_up(&now.output);
    }
    return status;
}

/* ---- stop ------------------------------------------------------------- */

/* Less than a quantum of each thread is left out. */
static uint64_t
sum_of_rests(uint32_t epoch)
{
    uint64_t quantum = load_relaxed(&cpprof__vm_quantum_ns), sum = 0;
    const struct cpprof_vm *only = load_relaxed(&cpprof__vm_only);
    struct cpprof__vm_thread *t;

    for (t = cpprof__vm_threads; t; t = t->next) {
        uint64_t rest;

        if (only && only != t->vm)
            continue;
        rest = cpprof__vm_rest(t, epoch, cpprof__now_ns(CLOCK_MONOTONIC));
        sum += rest - rest % quantum;
    }
    return sum;
}

static void
note_silent(uint64_t ns)
{
    if (ns >= load_relaxed(&cpprof__vm_quantum_ns))
        session->silent_ns += ns;
}

/*
 * After this only timers add samples. Returns the end time.
 *
 * That is read after the clocks of the threads. They run on meanwhile: when
 * this thread loses its processor in between, their clocks have time that came
 * after it, and the profile would have more time than it lasted.
 */
static uint64_t
close_session(void)
{
    uint64_t end_ns;

    cpprof__own_lock_take(&cpprof__vm_threads_lock);
    cpprof__own_lock_take(&session->lock);
    session->silent_ns = sum_of_rests(now.epoch) + cpprof__vm_take_unknown();
    end_ns = cpprof__now_ns(CLOCK_MONOTONIC);
    session->epoch = 0;
    store_release(&cpprof__vm_running.spans, 0u);
    store_release(&cpprof__vm_running.ticks, 0u);
    store_release(&cpprof__vm_active, 0u);
    cpprof__own_lock_give(&session->lock);
    cpprof__own_lock_give(&cpprof__vm_threads_lock);
    note_silent(cpprof__vm_take_orphans());
    return end_ns;
}

static void
stop(void)
{
    now.end_ns = close_session();
    if (now.has_ticker)
        cpprof__periodic_stop(&now.ticker);
    note_silent(cpprof__vm_timers_end());
    cpprof__periodic_stop(&now.writer);
}

static enum cpprof_status
write_profile(struct cpprof_capture *c, struct cpprof_error *error)
{
    enum cpprof_status status;

    (void)c;
    write_some(NULL);
    cpprof__vm_output_own(&now.output, CPPROF__FRAME_SILENT,
                          session->silent_ns);
    status = cpprof__vm_output_end(&now.output,
                                   (int64_t)(now.end_ns - now.start_ns), error);
    free_session();
    return status;
}

static void
free_capture(struct cpprof_capture *c)
{
    cpprof__free(c);
}

static const struct cpprof__sampler_ops ops = {
    .name = "vm",
    .busy = "profiler already running",
    .start = start,
    .stop = stop,
    .write = write_profile,
    .free = free_capture,
};

struct cpprof__life cpprof__vm_life = {.ops = &ops};

/* ---- the public calls ------------------------------------------------- */

enum cpprof_status
cpprof_vm_start(const struct cpprof_writer *given,
                const struct cpprof_vm_options *options,
                struct cpprof_error *error)
{
    struct capture *c = NULL;
    struct cpprof_vm_options checked;
    struct cpprof_writer writer;
    enum cpprof_status status;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    status = cpprof__writer_take(given, &writer, error);
    if (status == CPPROF_OK)
        status = read_options(options, &checked, error);
    if (status == CPPROF_OK &&
        !(c = cpprof__capture_new(&cpprof__vm_life, sizeof *c, &writer)))
        status = cpprof__fail_nomem(error);
    if (status != CPPROF_OK) {
        cpprof__writer_refuse(&writer);
        return status;
    }
    c->options = checked;
    return cpprof__default_start(&c->base, error);
}

enum cpprof_status
cpprof_vm_start_to_path(const char *path,
                        const struct cpprof_vm_options *options,
                        struct cpprof_error *error)
{
    return CPPROF__TO_PATH(path, error,
                           cpprof_vm_start(&writer, options, error));
}

/* No lock is held: callbacks of the interpreter run in here. */
void
cpprof__vm_charge_caller(void)
{
    uint32_t epoch = load_acquire(&cpprof__vm_active);

    if (epoch)
        cpprof__vm_charge_own(epoch);
}

enum cpprof_status
cpprof_vm_stop(struct cpprof_error *error)
{
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    cpprof__vm_charge_caller();
    return cpprof__default_stop(&cpprof__vm_life, error);
}

bool
cpprof_vm_is_running(void)
{
    return cpprof__default_runs(&cpprof__vm_life);
}

/* ---- functions that go ------------------------------------------------ */

void
cpprof__vm_session_forget(const struct cpprof_vm *vm, const void *function)
{
    const struct cpprof__vm_function_key key = {vm, function};
    CPPROF__UNCANCELLED;

    cpprof__own_lock_take(&session->lock);
    if (session->epoch)
        cpprof__vm_table_gone(&session->table, &key);
    cpprof__own_lock_give(&session->lock);
}

/* ---- fork ------------------------------------------------------------- */

/* The parent's writer and its memory are left alone, because its threads may
 * have been in the middle of using them. Only the thread that forked still runs
 * something. */
CPPROF__FIRST_STEP void
cpprof__vm_in_child(void)
{
    uint32_t epoch = now.epoch;
    struct cpprof__vm_thread *t;

    cpprof__own_lock_in_child(&cpprof__vm_threads_lock);
    store_relaxed(&cpprof__vm_running.spans, 0u);
    store_relaxed(&cpprof__vm_running.ticks, 0u);
    store_relaxed(&cpprof__vm_active, 0u);
    for (t = cpprof__vm_threads; t; t = t->next)
        if (&t->public != cpprof__vm_current)
            store_relaxed(&t->is_entered, 0u);
    if (has_begun) {
        memset(session, 0, sizeof *session);
        memset(&now, 0, sizeof now);
        now.epoch = epoch;
        cpprof__vm_timers_fork_child();
    }
    cpprof__life_in_child(&cpprof__vm_life);
    cpprof__vm_mix_fork_child();
}
