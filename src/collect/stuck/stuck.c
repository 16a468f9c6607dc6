/* SPDX-License-Identifier: MIT */
/*
 * Two looks at all threads, and what they have in common. One call at a time
 * (`lock`).
 */
#include "collect/stuck/stuck.h"

#include "arch/clock.h"
#include "arch/libc.h"
#include "arch/place.h"
#include "base/status.h"
#include "collect/dump/blocked_thread.h"
#include "collect/dump/dump.h"
#include "collect/runtime/own_lock.h"
#include "collect/signal/sample/sampler.h"
#include "collect/signal/unwind/stack_view.h"
#include "collect/store/tables.h"
#include "collect/threads/wait_clock.h"
#include "own/memory.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Tunable: between two looks. The proof needs no length; a thread that has just
 * been woken gets a processor meanwhile, and is not read for nothing. */
#define BETWEEN_NS 20000000

#define NOBODY UINT32_MAX

uint64_t cpprof__stuck_old_ns = CPPROF__STUCK_OLD_NS;

static struct cpprof__own_lock lock CPPROF__AT_START;

/* The threads that forked, in ancestors of this process: their copy, the first
 * thread of this process, has the locks that they had. Which thread of the
 * parent it was is not always known; then it is taken for its first. */
#define FORKERS 16
static int32_t forkers[FORKERS] CPPROF__AT_START;
static uint32_t n_forkers CPPROF__AT_START;

CPPROF__FIRST_STEP static void
add_forker(int32_t tid)
{
    if (tid && n_forkers < FORKERS)
        forkers[n_forkers++] = tid;
}

CPPROF__FIRST_STEP void
cpprof__stuck_in_child(void)
{
    cpprof__own_lock_in_child(&lock);
    if (cpprof__self.tid != getpid())
        add_forker(cpprof__self.tid);
    add_forker((int32_t)syscall(SYS_getppid));
}

/* ---- one look --------------------------------------------------------- */

struct look {
    struct cpprof__stuck *stuck;
    const struct cpprof__stuck *before;
    struct cpprof__creation_info *creations;
    size_t n_creations;
    bool wants_old;
    size_t n_seen;    /* that the kernel has let be read */
    size_t n_refused; /* and not */
    int32_t own;      /* tid */
    int folder;
    struct cpprof__wait_clock *clock;
};

static int
by_tid(const void *a, const void *b)
{
    const struct cpprof__stuck_thread *x = a, *y = b;

    return (x->tid > y->tid) - (x->tid < y->tid);
}

struct cpprof__stuck_thread *
cpprof__stuck_thread_of(const struct cpprof__stuck *stuck, int32_t tid)
{
    const struct cpprof__stuck_thread key = {.tid = tid};

    return stuck && stuck->n
               ? bsearch(&key, stuck->threads, stuck->n, sizeof key, by_tid)
               : NULL;
}

static uint64_t
clock_of(int32_t tid)
{
    return cpprof__clock_ns(CPPROF__THREAD_CPU_CLOCK(tid));
}

/* When its wait began; a thread that sleeps has not run since. */
static uint64_t
wait_began(const struct look *l, int32_t tid)
{
    const uint64_t began = cpprof__wait_began(l->clock, l->folder, tid);

    return began < l->stuck->now_ns ? began : l->stuck->now_ns;
}

static bool
is_old(const struct look *l, uint64_t since_ns)
{
    return since_ns && l->stuck->now_ns - since_ns >= cpprof__stuck_old_ns;
}

/* Read its stack; false: it has run. */
static bool
see_stack(const struct look *l, struct cpprof__stuck_thread *t,
          struct cpprof__blocked_thread *blocked)
{
    const struct cpprof__blocked_thread_who who = {
        l->folder, t->tid,
        cpprof__blocked_thread_self(
            t->tid, cpprof__creation_of(l->creations, l->n_creations, t->tid))};

    return cpprof__blocked_thread_read(CPPROF__DUMP_STUCK, &who, blocked) ==
               CPPROF__BLOCKED_READ &&
           blocked->cpu_ns == t->cpu_ns;
}

/* A guess counts for who is not stuck by it; it is held against the stack when
 * somebody would be. A wait of another kind is looked at only if it is old
 * enough to be suspicious. */
static void
see_wait(const struct look *l, struct cpprof__stuck_thread *t,
         const struct cpprof__task_call *call, bool verifies)
{
    struct cpprof__waits_for wait = cpprof__waits_for_guess(call);
    struct cpprof__blocked_thread blocked;

    if (!wait.kind && (!l->wants_old || call->number != SYS_futex))
        return;
    if (l->wants_old || verifies)
        t->since_ns = wait_began(l, t->tid);
    if (wait.kind && !verifies) {
        t->wait = wait;
        return;
    }
    if ((!wait.kind && !is_old(l, t->since_ns)) || !see_stack(l, t, &blocked) ||
        !cpprof__waits_for_is_true(&wait, call, blocked.answer.stack,
                                   blocked.wait.kind))
        return;
    t->wait = wait;
    t->is_true = true;
    t->stack = blocked.answer.stack;
    t->labels = blocked.answer.labels;
    if (blocked.wait.kind)
        t->since_ns = blocked.wait.since_ns;
}

static void
look_at(struct look *l, struct cpprof__stuck_thread *t)
{
    const struct cpprof__stuck_thread *before =
        cpprof__stuck_thread_of(l->before, t->tid);
    const bool verifies = before && before->verdict && !before->is_true;
    struct cpprof__task_call call;

    t->cpu_ns = clock_of(t->tid);
    t->holder_at = NOBODY;
    if (before && before->is_read && before->cpu_ns == t->cpu_ns && !verifies &&
        (before->wait.kind || !l->wants_old)) {
        *t = *before;
        t->verdict = CPPROF__STUCK_NOT;
        t->cycle = 0;
        l->n_seen++;
        return;
    }
    switch (cpprof__task_call(l->folder, t->tid, &call)) {
    case CPPROF__TASK_RUNS:
        l->n_seen += t->tid != l->own;
        return;
    case CPPROF__TASK_UNREADABLE: /* one that has just ended is so, too */
        l->n_refused++;
        return;
    case CPPROF__TASK_SLEEPS:
        l->n_seen++;
        break;
    }
    t->is_zombie = call.number < 0 && !call.sp;
    see_wait(l, t, &call, verifies);
    t->is_read = clock_of(t->tid) == t->cpu_ns;
    if (!t->is_read)
        t->wait = (struct cpprof__waits_for){.kind = CPPROF__FOR_NOTHING};
}

/* The thread that goes on as the one that forked. */
static int32_t
after_forks(int32_t tid)
{
    uint32_t i;

    for (i = 0; i < n_forkers; i++)
        if (forkers[i] == tid)
            return getpid();
    return tid;
}

/* Has another process a thread of that number? It may have mapped a lock that
 * it holds, and the page be missing there by now. */
static bool
is_elsewhere(int32_t tid)
{
    return tid > 0 && (!kill(tid, 0) || errno == EPERM);
}

/* Whom does it wait for now? */
static void
see_holder(const struct look *l, struct cpprof__stuck_thread *t)
{
    const struct cpprof__stuck_thread *holder;

    t->holder_at = NOBODY;
    t->is_holder_gone = false;
    if (!t->wait.kind)
        return;
    t->wait.holder = cpprof__waits_for_holder(&t->wait);
    holder = cpprof__stuck_thread_of(l->stuck, t->wait.holder);
    if (!holder && t->wait.is_between && is_elsewhere(t->wait.holder))
        return;
    if (!holder)
        t->wait.holder = after_forks(t->wait.holder);
    else if (after_forks(t->wait.holder) != t->wait.holder)
        return; /* one that forked, or a later one of the same number */
    if (!t->wait.holder || !cpprof__waits_for_one_of_ours(&t->wait))
        return;
    holder = cpprof__stuck_thread_of(l->stuck, t->wait.holder);
    if (holder && !holder->is_zombie)
        t->holder_at = (uint32_t)(holder - l->stuck->threads);
    else
        t->is_holder_gone = t->wait.kind != CPPROF__FOR_JOIN &&
                            (holder || !clock_of(t->wait.holder));
}

/* Changes when a thread of libc's starts or ends, and when there are more or
 * fewer; 0: not known. */
static uint64_t
changes(void)
{
    struct stat folder;

    if (stat("/proc/self/task", &folder))
        return 0;
    return (uint64_t)cpprof__thread_creation_changes() << 32 |
           (uint32_t)folder.st_nlink;
}

/* The tids, from malloc. Those of the look before, if nothing has changed: to
 * read the kernel's list costs more than all else. */
static int32_t *
list_tids(const struct look *l, size_t *n)
{
    const struct cpprof__stuck *before = l->before;
    int32_t *tids;
    size_t i;

    if (!before || !before->listed_at || before->listed_at != changes())
        return cpprof__live_threads(l->creations, l->n_creations, n);
    tids = cpprof__calloc(before->n + 1, sizeof *tids);
    for (i = 0; tids && i < before->n; i++)
        tids[i] = before->threads[i].tid;
    *n = before->n;
    return tids;
}

static enum cpprof_status
list(struct look *l, struct cpprof_error *error)
{
    enum cpprof_status status = cpprof__tasks_check(error);
    struct cpprof__stuck *stuck = l->stuck;
    size_t i, n = 0;
    int32_t *tids;

    if (!CPPROF__LIBC_LOCKS_ARE_KNOWN)
        return cpprof__fail(error, CPPROF_UNSUPPORTED, 0,
                            "stuck: the locks of musl are not known to cpprof");
    if (status != CPPROF_OK)
        return status;
    stuck->listed_at = changes();
    l->creations = cpprof__creations(&l->n_creations);
    tids = l->creations ? list_tids(l, &n) : NULL;
    stuck->threads =
        tids ? cpprof__calloc(n + 1, sizeof *stuck->threads) : NULL;
    for (i = 0; stuck->threads && i < n; i++)
        stuck->threads[i].tid = tids[i];
    stuck->n = stuck->threads ? n : 0;
    cpprof__free(tids);
    return stuck->threads ? CPPROF_OK : cpprof__fail_nomem(error);
}

/* Those that are announced may have ended long ago. */
static void
look_at_all(struct look *l)
{
    struct cpprof__stuck *stuck = l->stuck;
    size_t i, kept = 0;

    for (i = 0; i < stuck->n; i++) {
        look_at(l, &stuck->threads[i]);
        if (stuck->threads[i].cpu_ns)
            stuck->threads[kept++] = stuck->threads[i];
    }
    stuck->n = kept;
}

static enum cpprof_status
look(struct look *l, struct cpprof_error *error)
{
    enum cpprof_status status = list(l, error);
    struct cpprof__stuck *stuck = l->stuck;
    size_t i;

    if (status != CPPROF_OK)
        return status;
    l->folder = cpprof__tasks_folder();
    stuck->now_ns = cpprof__now_ns(CLOCK_MONOTONIC);
    l->own = (int32_t)syscall(SYS_gettid);
    look_at_all(l);
    for (i = 0; i < stuck->n; i++)
        see_holder(l, &stuck->threads[i]);
    if (l->folder >= 0)
        close(l->folder);
    if ((l->n_refused && !l->n_seen) || !cpprof__stack_view_copies() ||
        !clock_of(l->own))
        return cpprof__fail(error, CPPROF_UNSUPPORTED, EACCES,
                            "threads cannot be read: /proc/self/task/TID/"
                            "syscall, process_vm_readv or clock_gettime is "
                            "refused");
    return CPPROF_OK;
}

static enum cpprof_status
look_again(enum cpprof__stuck_wanted wanted, const struct cpprof__stuck *before,
           struct cpprof__stuck *stuck, struct cpprof_error *error)
{
    struct cpprof__wait_clock clock = {{0}};
    struct look l = {.stuck = stuck,
                     .clock = &clock,
                     .before = before,
                     .wants_old = wanted == CPPROF__STUCK_ALL};
    enum cpprof_status status = look(&l, error);

    cpprof__free(l.creations);
    if (status != CPPROF_OK)
        cpprof__stuck_free(stuck);
    return status;
}

/* ---- who is stuck ----------------------------------------------------- */

/* Walk from a thread to whom it waits for, and on. Those on the way have the
 * mark of this walk in .cycle meanwhile, which is above all numbers. */
#define WALK 0x80000000u

static void
name_cycle(struct cpprof__stuck *stuck, uint32_t first)
{
    uint32_t i = first;

    stuck->n_cycles++;
    do {
        stuck->threads[i].verdict = CPPROF__STUCK_CYCLE;
        stuck->threads[i].cycle = (uint32_t)stuck->n_cycles;
        i = stuck->threads[i].holder_at;
    } while (i != first);
}

static void
find_cycles(struct cpprof__stuck *stuck)
{
    struct cpprof__stuck_thread *threads = stuck->threads;
    uint32_t i, at;

    stuck->n_cycles = 0;
    for (i = 0; i < stuck->n; i++) {
        for (at = i; at != NOBODY && !threads[at].cycle;
             at = threads[at].holder_at)
            threads[at].cycle = WALK | i;
        if (at != NOBODY && threads[at].cycle == (WALK | i))
            name_cycle(stuck, at);
    }
    for (i = 0; i < stuck->n; i++)
        if (threads[i].verdict != CPPROF__STUCK_CYCLE)
            threads[i].cycle = 0;
}

/* The first on the way from i, i itself left out, that has a verdict; a way
 * without one has no cycle. */
static uint32_t
first_stuck(const struct cpprof__stuck *stuck, uint32_t i)
{
    do
        i = stuck->threads[i].holder_at;
    while (i != NOBODY && !stuck->threads[i].verdict);
    return i;
}

static void
judge(struct cpprof__stuck *stuck, bool wants_old)
{
    struct cpprof__stuck_thread *t;
    uint32_t i, at;

    find_cycles(stuck);
    for (i = 0; i < stuck->n; i++)
        if (stuck->threads[i].is_holder_gone ||
            stuck->threads[i].wait.is_refused)
            stuck->threads[i].verdict = CPPROF__STUCK_ENDED;
    for (i = 0; i < stuck->n; i++) {
        t = &stuck->threads[i];
        at = t->verdict ? NOBODY : first_stuck(stuck, i);
        if (at != NOBODY) {
            t->verdict = CPPROF__STUCK_BEHIND;
            t->cycle = stuck->threads[at].cycle;
        }
    }
    for (i = 0; wants_old && i < stuck->n; i++) {
        t = &stuck->threads[i];
        if (!t->verdict && t->wait.kind && t->wait.kind != CPPROF__FOR_JOIN &&
            t->since_ns && stuck->now_ns - t->since_ns >= cpprof__stuck_old_ns)
            t->verdict = CPPROF__STUCK_OLD;
    }
    for (i = 0, stuck->n_stuck = 0; i < stuck->n; i++)
        stuck->n_stuck += stuck->threads[i].verdict != CPPROF__STUCK_NOT;
}

/* What is not as in the look before counts for nothing, and is read again by
 * the next call. */
static void
keep_common(struct cpprof__stuck *stuck, const struct cpprof__stuck *before)
{
    size_t i;

    for (i = 0; i < stuck->n; i++) {
        struct cpprof__stuck_thread *t = &stuck->threads[i];
        const struct cpprof__stuck_thread *b =
            cpprof__stuck_thread_of(before, t->tid);

        if (b && b->is_read && b->cpu_ns == t->cpu_ns &&
            clock_of(t->tid) == t->cpu_ns && b->wait.kind == t->wait.kind &&
            b->wait.lock == t->wait.lock && b->wait.holder == t->wait.holder &&
            b->is_holder_gone == t->is_holder_gone)
            continue;
        t->wait = (struct cpprof__waits_for){.kind = CPPROF__FOR_NOTHING};
        t->holder_at = NOBODY;
        t->is_read = false;
        t->is_holder_gone = false;
    }
}

/* Of a thread that holds a lock and waits for nothing known: where it sleeps.
 */
static void
see_where(struct cpprof__stuck *stuck, struct cpprof__stuck_thread *t)
{
    const struct look l = {.stuck = stuck, .folder = CPPROF__NO_FOLDER};
    struct cpprof__blocked_thread blocked;

    if (!t->stack && see_stack(&l, t, &blocked)) {
        t->stack = blocked.answer.stack;
        t->labels = blocked.answer.labels;
    }
}

static void
name(struct cpprof__stuck_thread *t)
{
    struct cpprof__task task;

    if (!*t->comm && cpprof__task_look(CPPROF__NO_FOLDER, t->tid, &task))
        memcpy(t->comm, task.comm, sizeof t->comm);
}

/* What is said of those who are stuck, and of whom they wait for. */
static void
describe(struct cpprof__stuck *stuck)
{
    size_t i;

    for (i = 0; i < stuck->n; i++) {
        struct cpprof__stuck_thread *t = &stuck->threads[i];

        if (!t->verdict)
            continue;
        name(t);
        stuck->is_in_loader |=
            t->stack && cpprof__waits_for_in_loader(t->stack);
        if (t->holder_at != NOBODY) {
            name(&stuck->threads[t->holder_at]);
            see_where(stuck, &stuck->threads[t->holder_at]);
        }
    }
}

static enum cpprof_status
find_stuck(enum cpprof__stuck_wanted wanted, const struct cpprof__stuck *before,
           struct cpprof__stuck *stuck, struct cpprof_error *error)
{
    enum cpprof_status status = cpprof__dump_start_reading(error);
    struct cpprof__stuck first = {.n = 0};

    if (status != CPPROF_OK)
        return status;
    status = look_again(wanted, before, &first, error);
    if (status != CPPROF_OK)
        return status;
    judge(&first, wanted == CPPROF__STUCK_ALL);
    if (!first.n_stuck) {
        *stuck = first;
        return CPPROF_OK;
    }
    cpprof__sleep_ns(BETWEEN_NS);
    status = look_again(wanted, &first, stuck, error);
    if (status == CPPROF_OK) {
        keep_common(stuck, &first);
        judge(stuck, wanted == CPPROF__STUCK_ALL);
        describe(stuck);
    }
    cpprof__stuck_free(&first);
    return status;
}

enum cpprof_status
cpprof__stuck_find(enum cpprof__stuck_wanted wanted,
                   const struct cpprof__stuck *before,
                   struct cpprof__stuck *stuck, struct cpprof_error *error)
{
    enum cpprof_status status;

    memset(stuck, 0, sizeof *stuck);
    cpprof__own_lock_take(&lock);
    status = find_stuck(wanted, before, stuck, error);
    cpprof__own_lock_give(&lock);
    return status;
}

void
cpprof__stuck_free(struct cpprof__stuck *stuck)
{
    cpprof__free(stuck->threads);
    memset(stuck, 0, sizeof *stuck);
}
