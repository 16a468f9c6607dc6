/* SPDX-License-Identifier: MIT */
/*
 * Starts and stops pushing, and runs the thread that takes profiles.
 *
 * Both cpprof_push_stop() and the end of the process exchange `current` for
 * NULL, so that only one of them stops it. The last of its threads frees the
 * struct, because a thread that does not end in time is not waited for.
 */
#include "push/push.h"
#include "arch/clock.h"
#include "own/memory.h"
#include "push/process.h"

#include "arch/atomic.h"
#include "arch/place.h"
#include "base/status.h"
#include "collect/process/environment.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/own_threads.h"
#include "collect/runtime/uncancelled.h"
#include "push/context.h"
#include "push/files.h"
#include "push/rounds.h"

#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ull

/* How long the last profiles may take, and then how long libcurl may take to
 * give up. */
#define END_NS    (2 * NS_PER_S)
#define CANCEL_NS (NS_PER_S / 2)

/* A forked child that execs or ends at once has no captures. */
#define CHILD_NS NS_PER_S

/* One line in so long. */
#define NOTICE_NS (60 * NS_PER_S)

/* NULL: nothing is pushed. */
static struct cpprof__push *current CPPROF__AT_START;
/* What a child leaves alone. */
static struct cpprof__push *of_parent CPPROF__AT_START;
/* 1: somebody begins, or it goes on. */
static uint32_t is_taken CPPROF__AT_START;

void
cpprof__push_wait(const uint32_t *word, uint32_t value, uint64_t ns)
{
    const struct timespec t = {(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};

    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &t, NULL, 0);
}

/* Wake all that sleep on *word. */
static void
wake(const uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* Drop a reference; the last one frees it. */
static void
release(struct cpprof__push *push)
{
    if (__atomic_sub_fetch(&push->n_users, 1u, __ATOMIC_ACQ_REL))
        return;
    if (push->item)
        cpprof__push_item_free(push->item);
    cpprof__push_queue_clear(&push->queue);
    cpprof__buffer_free(&push->resource);
    explicit_bzero(push, sizeof *push);
    cpprof__free(push);
}

/* ---- what goes wrong -------------------------------------------------- */

void
cpprof__push_notice(struct cpprof__push *push, const char *line)
{
    cpprof__own_lock_take(&push->notice_lock);
    if (!*push->notice || load_acquire(&push->stop))
        snprintf(push->notice, sizeof push->notice, "%s", line);
    cpprof__own_lock_give(&push->notice_lock);
}

/* Take the pending message and the number of dropped profiles; false if there
 * is neither. */
static bool
make_line(struct cpprof__push *push, char *line, size_t n)
{
    uint64_t n_dropped = cpprof__push_queue_dropped(&push->queue, true);
    char notice[sizeof push->notice];

    cpprof__own_lock_take(&push->notice_lock);
    strcpy(notice, push->notice);
    *push->notice = 0;
    cpprof__own_lock_give(&push->notice_lock);
    if (!n_dropped)
        snprintf(line, n, "%s", notice);
    else if (*notice)
        snprintf(line, n, "%s (dropped: %llu)", notice,
                 (unsigned long long)n_dropped);
    else
        snprintf(line, n, "push: %.120s: dropped: %llu", push->plan.shown,
                 (unsigned long long)n_dropped);
    return *line;
}

/* The first message is printed at once, then at most one a minute, and at the
 * end what was dropped since. */
static void
tell(struct cpprof__push *push, bool is_last)
{
    char line[sizeof push->notice + 40];
    uint64_t now = cpprof__now_ns(CLOCK_MONOTONIC);
    bool is_soon = push->told_ns && now - push->told_ns < NOTICE_NS;

    if (!push->plan.report ||
        (is_soon &&
         !(is_last && cpprof__push_queue_dropped(&push->queue, false))))
        return;
    if (!make_line(push, line, sizeof line))
        return;
    push->told_ns = now;
    push->plan.report(push->plan.ctx, line);
}

/* ---- the thread that takes -------------------------------------------- */

static void
complain(void *ctx, const struct cpprof_error *error)
{
    char line[sizeof error->text + 8];

    snprintf(line, sizeof line, "%s%s",
             strncmp(error->text, "push: ", 6) ? "push: " : "", error->text);
    cpprof__push_notice(ctx, line);
}

static void
lose(struct cpprof__push *push, const struct cpprof_error *error)
{
    complain(push, error);
    cpprof__push_queue_lose(&push->queue);
}

static void
take_profile(void *ctx, const struct cpprof__push_profile *profile)
{
    struct cpprof__push_item *item;
    struct cpprof__push *push = ctx;
    struct cpprof_error error;

    if (*push->plan.pattern) {
        if (cpprof__push_file_write(&push->plan, profile, &error) != CPPROF_OK)
            lose(push, &error);
        return;
    }
    item = cpprof__calloc(1, sizeof *item);
    if (item) {
        item->kind = profile->kind;
        item->series = profile->series;
        item->from_ns = profile->from_ns;
        item->until_ns = profile->until_ns;
        item->parts = cpprof__push_part_make(profile->data, profile->n, 0);
    }
    if (!item || !item->parts) {
        cpprof__push_item_free(item);
        cpprof__fail_nomem(&error);
        lose(push, &error);
        return;
    }
    cpprof__push_queue_put(&push->queue, item);
    add_relaxed(&push->n_queued, 1u);
    wake(&push->n_queued);
}

/* False: it is to end. */
static bool
sleep_until(struct cpprof__push *push, uint64_t until_ns)
{
    uint64_t now;

    while ((now = cpprof__now_ns(CLOCK_MONOTONIC)) < until_ns) {
        if (load_acquire(&push->stop) || load_acquire(&push->cancelled) ||
            cpprof__own_thread_must_leave())
            return false;
        tell(push, false);
        cpprof__push_wait(&push->stop, 0,
                          until_ns - now < CPPROF__OWN_LOOK_NS
                              ? until_ns - now
                              : CPPROF__OWN_LOOK_NS);
    }
    return !load_acquire(&push->stop) && !load_acquire(&push->cancelled);
}

/* What ends next, ns after the last end. If writing captures takes longer than
 * that, an interval is skipped. */
static uint64_t
next_end(uint64_t end_ns, uint64_t ns)
{
    uint64_t now = cpprof__now_ns(CLOCK_MONOTONIC);

    end_ns += ns;
    return end_ns > now ? end_ns : now + ns;
}

/* Processes that begin together are not to push together: the first interval
 * is up to a half shorter at random, and so is all of the first rest. */
static uint64_t
first_ns(const struct cpprof__push *push, uint64_t ns, uint64_t jitter_ns)
{
    return *push->plan.pattern ? ns : ns - cpprof__push_random_ns(jitter_ns);
}

/* The end of an interval, or of the rest behind it. */
static void
turn(struct cpprof__push *push)
{
    uint64_t interval_ns = push->plan.interval_s * NS_PER_S,
             rest_ns = push->plan.every_s * NS_PER_S - interval_ns;

    if (push->is_resting || !rest_ns)
        cpprof__push_budget_look(&push->budget);
    push->rounds.slower = push->budget.rates;
    interval_ns <<= push->budget.intervals;
    rest_ns <<= push->budget.intervals;
    if (push->is_resting || !rest_ns) {
        if (push->is_resting)
            cpprof__push_rounds_resume(&push->rounds);
        else
            cpprof__push_rounds_turn(&push->rounds, CPPROF__PUSH_ON);
        push->is_resting = false;
        push->end_ns = next_end(push->end_ns, interval_ns);
    } else {
        cpprof__push_rounds_turn(&push->rounds, CPPROF__PUSH_REST);
        push->is_resting = true;
        if (!push->has_turned)
            rest_ns = first_ns(push, rest_ns, rest_ns);
        push->end_ns = next_end(push->end_ns, rest_ns);
    }
    push->has_turned = true;
}

static void
begin_rounds(void *arg)
{
    struct cpprof__push *push = arg;

    push->rounds = (struct cpprof__push_rounds){
        .plan = &push->plan,
        .take = take_profile,
        .complain = complain,
        .ctx = push,
    };
    cpprof__push_budget_begin(&push->budget, push->plan.budget_ppm);
    cpprof__push_rounds_begin(&push->rounds);
}

/* Take the profiles of all rounds. False: this goes on after a pause. */
static bool
take_all(struct cpprof__push *push)
{
    uint64_t interval_ns = push->plan.interval_s * NS_PER_S;

    if (!push->end_ns)
        push->end_ns = cpprof__now_ns(CLOCK_MONOTONIC) +
                       first_ns(push, interval_ns, interval_ns / 2);
    while (sleep_until(push, push->end_ns))
        turn(push);
    if (cpprof__own_threads_pause_now())
        return false;
    if (load_acquire(&push->cancelled) ||
        (!push->has_turned && push->plan.is_descendant))
        cpprof__push_rounds_drop(&push->rounds);
    else
        cpprof__push_rounds_turn(&push->rounds, CPPROF__PUSH_LAST);
    cpprof__push_budget_end(&push->budget);
    return true;
}

static void
thread_ends(struct cpprof__push *push)
{
    __atomic_sub_fetch(&push->n_running, 1u, __ATOMIC_ACQ_REL);
    wake(&push->n_running);
    release(push);
}

static bool
run_taker(void *arg)
{
    struct cpprof__push *push = arg;

    if (push->plan.is_descendant && !push->rounds.plan &&
        sleep_until(push, cpprof__now_ns(CLOCK_MONOTONIC) + CHILD_NS))
        begin_rounds(push);
    if (push->rounds.plan ? !take_all(push) : cpprof__own_threads_pause_now())
        return true;
    /* When only threads of ours are left nobody else says so. */
    store_release(&push->stop, 1u);
    wake(&push->stop);
    store_release(&push->has_taken, 1u);
    add_relaxed(&push->n_queued, 1u);
    wake(&push->n_queued);
    thread_ends(push);
    return false;
}

static bool
run_sender(void *arg)
{
    struct cpprof__push *push = arg;

    cpprof__push_send_all(push, cpprof__push_end);
    if (cpprof__own_threads_pause_now())
        return true;
    thread_ends(push);
    return false;
}

/* ---- begin ------------------------------------------------------------ */

static enum cpprof_status
start_thread(struct cpprof__push *push, bool (*run)(void *arg), unsigned flags,
             struct cpprof_error *error)
{
    int failed;

    add_relaxed(&push->n_users, 1u);
    add_relaxed(&push->n_running, 1u);
    failed = cpprof__own_thread_detached(run, push, flags);
    if (!failed)
        return CPPROF_OK;
    __atomic_sub_fetch(&push->n_users, 1u, __ATOMIC_ACQ_REL);
    __atomic_sub_fetch(&push->n_running, 1u, __ATOMIC_ACQ_REL);
    return cpprof__fail(error, CPPROF_SYSTEM, failed, "push: no thread: %s",
                        strerror(failed));
}

static void
report(void *ctx, const char *line)
{
    char text[CPPROF__PUSH_LINE_BYTES + 64];
    int n = snprintf(text, sizeof text, "cpprof: %s\n", line);

    (void)ctx;
    cpprof__own_thread_say(text, (size_t)n);
}

/* Of the taker. A function of the program that is told of errors has the
 * program's descriptors; and so has who may make perf events. */
static unsigned
table_of(const struct cpprof__push_plan *plan)
{
    bool is_programs = (plan->report && plan->report != report) ||
                       plan->cpu.engine == CPPROF_ENGINE_PERF;

    return is_programs ? 0 : CPPROF__OWN_TABLE;
}

static enum cpprof_status
start_threads(struct cpprof__push *push, struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;

    /* The first interval contains what the program does next, so it begins here
     * and not in the taker. It begins on a thread of ours, since LeakSanitizer
     * ignores what those allocate (own_threads.c). */
    if (!push->plan.is_descendant)
        cpprof__own_thread_run(begin_rounds, push);
    if (!*push->plan.pattern)
        status = start_thread(push, run_sender, CPPROF__OWN_TABLE, error);
    if (status == CPPROF_OK)
        status = start_thread(push, run_taker, table_of(&push->plan), error);
    if (status == CPPROF_OK)
        return status;
    cpprof__push_rounds_drop(&push->rounds);
    store_release(&push->has_taken, 1u);
    store_release(&push->cancelled, 1u);
    return status;
}

/* is_later: the plug-in is loaded when it is needed. */
enum { CHILD = 1, LATER = 2 };

static enum cpprof_status
start(const char *url, const struct cpprof_push_options *options,
      unsigned flags, struct cpprof_error *error)
{
    struct cpprof__push *push = cpprof__calloc(1, sizeof *push);
    enum cpprof_status status;

    if (!push)
        return cpprof__fail_nomem(error);
    push->n_users = 1;
    push->most_bytes = SIZE_MAX;
    push->pid = (int32_t)getpid();
    status = cpprof__push_plan_make(url, options, &push->plan, error);
    push->plan.is_descendant = flags & CHILD;
    cpprof__context_instance(push->plan.instance);
    push->queue.max_bytes = push->plan.queue_bytes;
    if (status == CPPROF_OK && !*push->plan.pattern && !(flags & LATER))
        status = cpprof__push_load(push, error);
    if (status == CPPROF_OK)
        status = start_threads(push, error);
    if (status == CPPROF_OK)
        store_release(&current, push);
    else
        release(push);
    return status;
}

static enum cpprof_status
begin(const char *url, const struct cpprof_push_options *options,
      unsigned flags, struct cpprof_error *error)
{
    enum cpprof_status status;

    if (swap_acq_rel(&is_taken, 1u))
        return cpprof__fail(error, CPPROF_BUSY, 0,
                            "push: this process pushes already");
    status = start(url, options, flags, error);
    if (status != CPPROF_OK)
        store_release(&is_taken, 0u);
    return status;
}

CPPROF_API enum cpprof_status
cpprof_push_start(const char *url, const struct cpprof_push_options *options,
                  struct cpprof_error *error)
{
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    if (!url || !*url)
        return cpprof__fail(error, CPPROF_INVALID, 0, "push: no URL");
    return begin(url, options, 0, error);
}

/* ---- end -------------------------------------------------------------- */

/* Wait for the end of all threads, for so long at most. */
static void
wait_for_threads(struct cpprof__push *push, uint64_t ns)
{
    uint64_t until = cpprof__now_ns(CLOCK_MONOTONIC) + ns, now;
    uint32_t n;

    while ((n = load_acquire(&push->n_running)) &&
           (now = cpprof__now_ns(CLOCK_MONOTONIC)) < until)
        cpprof__push_wait(&push->n_running, n, until - now);
}

static void
finish(struct cpprof__push *push)
{
    store_release(&push->stop, 1u);
    wake(&push->stop);
    wait_for_threads(push, END_NS);
    store_release(&push->cancelled, 1u);
    wait_for_threads(push, CANCEL_NS);
    cpprof__push_queue_clear(&push->queue); /* what is left is told, too */
    tell(push, true);
}

/* The pushing thread must not wait for itself. */
CPPROF_API void
cpprof_push_stop(void)
{
    struct cpprof__push *push;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    if (cpprof__own_thread_is_this())
        return;
    push = swap_acq_rel(&current, (struct cpprof__push *)NULL);
    if (!push)
        return;
    finish(push);
    release(push);
    store_release(&is_taken, 0u);
}

/* The struct is not freed: the caller may be a handler of a signal that ends
 * the process. The last thread may be one of ours, when nothing else is left to
 * do. */
CPPROF__FIRST_STEP void
cpprof__push_end(void)
{
    struct cpprof__push *push = load_acquire(&current);
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    if (!push || push->pid != (int32_t)getpid())
        return;
    push = swap_acq_rel(&current, (struct cpprof__push *)NULL);
    if (push)
        finish(push);
}

/* Only the kernel looks at the words: they may be gone. */
void
cpprof__push_wake_up(void)
{
    struct cpprof__push *push = load_acquire(&current);

    if (push) {
        wake(&push->stop);
        wake(&push->n_queued);
    }
}

/* ---- CPPROF=push= ----------------------------------------------------- */

CPPROF__FIRST_STEP void
cpprof__push_in_child(void)
{
    of_parent = swap_acq_rel(&current, (struct cpprof__push *)NULL);
    store_release(&is_taken, 0u);
}

/* The clients of Pyroscope read these variables, too. */
static const char *
or_variable(const char *word, const char *variable)
{
    return *word ? word : secure_getenv(variable);
}

static uint32_t
kinds_of(uint32_t env)
{
    /* ORDER: CPPROF_PUSH_* */
    static const uint32_t kinds[CPPROF__PUSH_KINDS] = {
        CPPROF__KIND_CPU,
        CPPROF__KIND_HEAP,
        CPPROF__KIND_BLOCK,
        CPPROF__KIND_MUTEX,
        CPPROF__KINDS_OF_WALL,
        CPPROF__KIND_THREADS,
        0}; /* profiles of the program's own come with all */
    uint32_t found = 0;
    unsigned i;

    for (i = 0; i < CPPROF__PUSH_KINDS; i++)
        if (env & kinds[i])
            found |= 1u << i;
    return found ? found | CPPROF_PUSH_CUSTOM : 0;
}

static enum cpprof_status
push_as_asked(const struct cpprof__environment *env, bool is_descendant,
              struct cpprof_error *error)
{
    const struct cpprof__push_settings *words = &env->push;
    struct cpprof_cpu_options cpu = env->cpu;
    struct cpprof_push_options options = {
        .size = sizeof options,
        .name = or_variable(words->name, "PYROSCOPE_APPLICATION_NAME"),
        .labels = or_variable(words->labels, "PYROSCOPE_LABELS"),
        .kinds = kinds_of(env->kinds),
        .interval_seconds = words->interval_s,
        .every_seconds = words->every_s,
        .protocol = words->protocol,
        .user = or_variable(words->user, "PYROSCOPE_BASIC_AUTH_USER"),
        .password = secure_getenv("PYROSCOPE_BASIC_AUTH_PASSWORD"),
        .token_file = words->token_file,
        .tenant = or_variable(words->tenant, "PYROSCOPE_TENANT_ID"),
        .keep = words->keep,
        .budget_ppm = words->budget_ppm,
        .cpu = &cpu,
        .wall = &env->wall,
        .profiles = &env->others,
        .report = report,
    };

    cpu.size = sizeof cpu;
    if (!*words->token_file)
        options.token = secure_getenv("PYROSCOPE_AUTH_TOKEN");
    return begin(words->url, &options, LATER | (is_descendant ? CHILD : 0),
                 error);
}

CPPROF__FIRST_STEP void
cpprof__push_begin(void)
{
    const struct cpprof__environment *env;
    struct cpprof_error error;
    bool is_descendant;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    env = cpprof__environment_push(&is_descendant);
    if (env && push_as_asked(env, is_descendant, &error) != CPPROF_OK)
        cpprof__environment_complain(&error);
}

CPPROF__FIRST_STEP void
cpprof__push_begin_child(void)
{
    if (!of_parent)
        return;
    cpprof__push_budget_end(&of_parent->budget);
    cpprof__push_begin();
}
