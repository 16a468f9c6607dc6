/* SPDX-License-Identifier: MIT */
/*
 * Looks for threads that can never go on, a few times a second, on a thread of
 * ours with a table of descriptors of its own, and tells of each once.
 *
 * Sentences come first, since they need nothing of the program: names of
 * functions may need the loader, whose lock may be one of those that are stuck.
 * So stacks are written on another thread of ours, and waited for so long.
 *
 * What the program gives us is called on the keeper, which has the program's
 * descriptors.
 */
#include "collect/stuck/watch.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "arch/place.h"
#include "base/options.h"
#include "base/status.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/own_lock.h"
#include "collect/runtime/periodic.h"
#include "collect/runtime/proc.h"
#include "collect/stuck/stuck_text.h"
#include "own/memory.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Tunable: looks come at a random moment of each period, so two are at most two
 * periods apart, which is how late a deadlock is told. Shorter costs more. */
#define PERIOD_NS 300000000u
/* Tunable: so long for the stacks of a deadlock. */
#define STACKS_NS 5000000000u
/* Between looks whether a callback has returned. */
#define NAP_NS 5000000

/* Of those who start and stop. */
static struct cpprof__own_lock lock CPPROF__AT_START;
static struct watch {
    struct cpprof__periodic periodic; /* first */
    struct cpprof_deadlock_options options;
    struct cpprof__stuck last; /* what the last turn found */
    bool aborts;
    bool is_running;
    bool has_aborted; /* SIGABRT was sent, and the cycle stands */
} watch;
/* A thread that looks for them has not come back. */
static bool names_hang CPPROF__AT_START;

/* ---- stacks ----------------------------------------------------------- */

struct stacks {
    struct cpprof__own_thread thread;
    struct cpprof__stuck stuck; /* a copy */
    enum cpprof_symbolize symbolize;
    struct cpprof__buffer text;
};

static int
append(void *ctx, const void *data, size_t n)
{
    struct cpprof__buffer *text = ctx;

    cpprof__buffer_append(text, data, n);
    return text->failed ? -1 : 0;
}

static bool
write_stacks(void *arg)
{
    struct stacks *s = arg;
    const struct cpprof_writer writer = {
        .size = sizeof writer, .write = append, .ctx = &s->text};

    cpprof__stuck_write_stacks(&s->stuck, s->symbolize, writer, NULL);
    return false;
}

static struct stacks *
make_stacks(const struct cpprof__stuck *stuck)
{
    struct stacks *s = cpprof__calloc(1, sizeof *s);
    struct cpprof__stuck_thread *threads =
        cpprof__calloc(stuck->n + 1, sizeof *threads);

    if (!s || !threads) {
        cpprof__free(s);
        cpprof__free(threads);
        return NULL;
    }
    memcpy(threads, stuck->threads, stuck->n * sizeof *threads);
    s->stuck = *stuck;
    s->stuck.threads = threads;
    s->symbolize = cpprof__stuck_names(stuck, watch.options.symbolize);
    s->thread = (struct cpprof__own_thread){.name = "cpprof-stacks",
                                            .run = write_stacks,
                                            .arg = s,
                                            .flags = CPPROF__OWN_TABLE};
    return s;
}

/* Add the stacks to a text, if they come in time. A thread that hangs keeps
 * what it works on. */
static void
add_stacks(const struct cpprof__stuck *stuck, struct cpprof__buffer *text)
{
    struct stacks *s = names_hang ? NULL : make_stacks(stuck);
    bool has_begun = s && !cpprof__own_thread_start(&s->thread);

    if (has_begun)
        names_hang = !cpprof__own_thread_join(
            &s->thread, cpprof__now_ns(CLOCK_MONOTONIC) + STACKS_NS);
    if (has_begun && names_hang)
        return;
    if (has_begun)
        cpprof__buffer_append(text, s->text.data, s->text.n);
    if (s) {
        cpprof__buffer_free(&s->text);
        cpprof__stuck_free(&s->stuck);
    }
    cpprof__free(s);
}

/* ---- telling ---------------------------------------------------------- */

static struct cpprof_deadlock deadlock; /* for the callback */
static uint32_t is_told;                /* it has returned */
static int32_t teller;                  /* the thread that is in it, or 0 */

static void
call_told(void)
{
    store_relaxed(&teller, (int32_t)syscall(SYS_gettid));
    watch.options.told(&deadlock, watch.options.ctx);
    store_relaxed(&teller, 0);
    store_release(&is_told, 1u);
}

static bool
is_teller(void)
{
    int32_t tid = load_relaxed(&teller);

    return tid && tid == (int32_t)syscall(SYS_gettid);
}

static void
call_program(const struct cpprof__stuck *stuck, const char *text)
{
    int32_t *tids = cpprof__calloc(stuck->n_stuck + 1, sizeof *tids);
    size_t i, n = 0;

    for (i = 0; tids && i < stuck->n; i++)
        if (stuck->threads[i].verdict)
            tids[n++] = stuck->threads[i].tid;
    deadlock = (struct cpprof_deadlock){.size = sizeof deadlock,
                                        .text = text,
                                        .tids = tids,
                                        .n_threads = n,
                                        .n_cycles = stuck->n_cycles};
    store_relaxed(&is_told, 0u);
    if (!cpprof__own_keeper_run(call_told))
        call_told();
    while (!load_acquire(&is_told))
        cpprof__sleep_ns(NAP_NS);
    cpprof__free(tids);
}

static bool
is_by_cycle(const struct cpprof__stuck *stuck)
{
    size_t i;

    for (i = 0; i < stuck->n; i++)
        if (stuck->threads[i].wait.is_refused)
            return true;
    return stuck->n_cycles > 0;
}

/* Whatever the program does about that signal: it was asked, or cannot be. */
static void
abort_here(void)
{
    signal(SIGABRT, SIG_DFL);
    if (!cpprof__own_keeper_run(abort))
        abort();
}

/* SIGABRT is sent to a thread that can never go on: a handler of the program
 * runs where it may as well be called by abort(), and may jump. */
static void
send_abort(const struct cpprof__stuck *stuck)
{
    struct sigaction now = {.sa_handler = SIG_DFL};
    size_t i;

    watch.has_aborted = true;
    sigaction(SIGABRT, NULL, &now);
    for (i = 0; i < stuck->n && now.sa_handler != SIG_IGN; i++)
        if ((stuck->threads[i].verdict == CPPROF__STUCK_CYCLE ||
             stuck->threads[i].wait.is_refused) &&
            !cpprof__proc_blocks(stuck->threads[i].tid, SIGABRT) &&
            !syscall(SYS_tgkill, getpid(), stuck->threads[i].tid, SIGABRT))
            return;
    abort_here();
}

static void
tell(const struct cpprof__stuck *stuck)
{
    struct cpprof__buffer text = {0};
    size_t n;

    cpprof__buffer_printf(&text, "cpprof: %zu thread%s can never go on\n\n",
                          stuck->n_stuck, stuck->n_stuck == 1 ? "" : "s");
    cpprof__stuck_put_sentences(&text, stuck);
    n = text.n;
    if (!watch.options.told)
        cpprof__own_thread_say((const char *)text.data, n);
    add_stacks(stuck, &text);
    cpprof__buffer_append(&text, "", 1);
    if (!text.failed && watch.options.told)
        call_program(stuck, (const char *)text.data);
    else if (!text.failed)
        cpprof__own_thread_say((const char *)text.data + n, text.n - 1 - n);
    cpprof__buffer_free(&text);
    if (watch.aborts && is_by_cycle(stuck))
        send_abort(stuck);
}

/* ---- turns ------------------------------------------------------------ */

/* Is anybody in it who was not when it was told last? Those do not run, so
 * their clocks stand still. */
static bool
has_news(const struct cpprof__stuck *stuck)
{
    const struct cpprof__stuck_thread *before;
    size_t i;

    for (i = 0; i < stuck->n; i++) {
        const struct cpprof__stuck_thread *t = &stuck->threads[i];

        if (!t->verdict || t->verdict == CPPROF__STUCK_BEHIND)
            continue;
        before = cpprof__stuck_thread_of(&watch.last, t->tid);
        if (!before || !before->verdict || before->cpu_ns != t->cpu_ns)
            return true;
    }
    return false;
}

static void
complain(const struct cpprof_error *error)
{
    char line[sizeof error->text + 64];
    int n = snprintf(line, sizeof line,
                     "cpprof: not looking for deadlocks: %s\n", error->text);

    cpprof__own_thread_say(line, (size_t)n);
}

static void
turn(struct cpprof__periodic *periodic)
{
    struct cpprof__stuck stuck;
    struct cpprof_error error;
    enum cpprof_status status =
        cpprof__stuck_find(CPPROF__STUCK_PROVEN, &watch.last, &stuck, &error);

    if (status == CPPROF_NOMEM)
        return;
    if (status != CPPROF_OK) {
        complain(&error);
        store_release(&periodic->finish, 1u);
        return;
    }
    watch.has_aborted &= is_by_cycle(&stuck);
    if (!watch.has_aborted && has_news(&stuck))
        tell(&stuck);
    else if (watch.has_aborted && !has_news(&stuck))
        abort_here(); /* a handler has returned, or waits in the cycle, too */
    cpprof__stuck_free(&watch.last);
    watch.last = stuck;
}

/* ---- start and stop --------------------------------------------------- */

static void
end(void)
{
    cpprof__periodic_stop(&watch.periodic);
    cpprof__stuck_free(&watch.last);
    watch.is_running = false;
}

static enum cpprof_status
start(const struct cpprof_deadlock_options *options, bool aborts,
      struct cpprof_error *error)
{
    int failed;

    /* The callback stopped it, or it could not go on. */
    if (watch.is_running && load_acquire(&watch.periodic.finish))
        end();
    if (watch.is_running)
        return cpprof__fail(error, CPPROF_BUSY, 0,
                            "deadlocks are looked for already");
    watch = (struct watch){.periodic = {.name = "cpprof-deadlock",
                                        .turn = turn,
                                        .period_ns = PERIOD_NS,
                                        .flags = CPPROF__OWN_TABLE},
                           .options = *options,
                           .aborts = aborts};
    failed = cpprof__periodic_start(&watch.periodic);
    if (failed)
        return cpprof__fail(error, CPPROF_SYSTEM, failed,
                            "no thread to look for deadlocks: %s",
                            strerror(failed));
    watch.is_running = true;
    return CPPROF_OK;
}

enum cpprof_status
cpprof__watch_start(const struct cpprof_deadlock_options *given, bool aborts,
                    struct cpprof_error *error)
{
    struct cpprof_deadlock_options options = {.size = sizeof options};
    enum cpprof_status status = cpprof__options(
        &options, sizeof options, given, "cpprof_deadlock_options", error);
    CPPROF__EXEMPT;

    if (status == CPPROF_OK)
        status = cpprof__options_flags(0, 0, options.symbolize, error);
    if (status != CPPROF_OK)
        return status;
    if (is_teller())
        return cpprof__fail(error, CPPROF_BUSY, 0,
                            "deadlocks are looked for already");
    cpprof__own_lock_take(&lock);
    status = start(&options, aborts, error);
    cpprof__own_lock_give(&lock);
    return status;
}

enum cpprof_status
cpprof_deadlock_start(const struct cpprof_deadlock_options *options,
                      struct cpprof_error *error)
{
    struct cpprof__stuck now;
    enum cpprof_status status;
    CPPROF__EXEMPT;

    /* Once on the caller, who learns whether it can be done here. */
    status = cpprof__stuck_find(CPPROF__STUCK_PROVEN, NULL, &now, error);
    if (status != CPPROF_OK)
        return status;
    cpprof__stuck_free(&now);
    return cpprof__watch_start(options, false, error);
}

void
cpprof_deadlock_stop(void)
{
    CPPROF__EXEMPT;

    /* The watch waits for the callback. */
    if (is_teller()) {
        store_release(&watch.periodic.finish, 1u);
        return;
    }
    cpprof__own_lock_take(&lock);
    if (watch.is_running)
        end();
    cpprof__own_lock_give(&lock);
}

CPPROF__FIRST_STEP void
cpprof__watch_in_child(void)
{
    if (cpprof__own_lock_in_child(&lock) || watch.is_running)
        memset(&watch, 0, sizeof watch);
    cpprof__stuck_names_in_child();
    names_hang = false;
    teller = 0;
}
