/* SPDX-License-Identifier: MIT */
/*
 * The looks of a wall profile: which threads there are, what each did since
 * its last look, and whether it has to be asked.
 *
 * A thread whose CPU clock stood still has slept all the time and is charged
 * where it stood. A thread that sleeps in a call which a signal would end is
 * read from outside (dump/blocked_thread.h). Every other one is asked
 * (sample/dump.h) and charged when its answer comes. Each thread has a slot
 * for questions as long as it is known.
 *
 * Invariants: all of this runs under the ticker's `busy` lock; the list is
 * sorted by tid; what is charged to a thread adds up to the time since its
 * first look.
 */
#include "collect/wall/wall_sampler.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "collect/dump/blocked_thread.h"
#include "collect/dump/dump.h"
#include "collect/encode/builder.h"
#include "collect/runtime/own_threads.h"
#include "collect/runtime/proc.h"
#include "collect/signal/sample/sampler.h"
#include "collect/threads/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Tunables. The threads are counted this often, and listed when there are not
 * as many as are known, and now and then; and whenever one that we know of
 * started or ended, if that costs no more than 1 % of the time. */
#define COUNT_NS   1000000000u
#define LIST_NS    10000000000u
#define LIST_SHARE 100u
/* Whether a thread blocks the signal is looked up this often, at most. */
#define MASK_NS 1000000000u
/* A running thread is believed to block the signal after it was seen so often
 * to do so. */
#define MASK_LOOKS 10
/* CPU time that a thread may use between the end of our handler and the sleep
 * that we interrupted. If it is larger, work as short as this is taken for
 * sleep. If it is smaller, a sleeping thread is asked once more. */
#define RETURN_NS 30000u
/* A thread that sleeps now and then, and has run for less than this since its
 * last look, runs only for moments: a question would find it asleep again. If
 * this is larger, more work is taken for sleep. If it is smaller, more sleeps
 * are interrupted. */
#define MOMENT_NS 60000u
/* A thread that sleeps now and then in a call which a signal would end may be
 * found waiting for a processor. After so many such looks in a row it is asked
 * nevertheless. */
#define PUT_OFF 8
/* A question is repeated after this time. */
#define AGAIN_NS 20000000u

struct cpprof__wall_thread {
    int32_t tid;
    uint32_t slot;
    uint64_t looked_ns; /* CLOCK_MONOTONIC; 0: never */
    uint64_t cpu_ns;    /* its clock at the last look or answer */
    uint64_t first_ns;  /* time that its first look stands for; 0: the usual */
    uint64_t masked_ns; /* when its mask was looked up; 0: never */

    /* The last answer. */
    bool has_answer;
    bool is_fresh; /* it came after the last look */
    struct cpprof__wall_count at;

    /* The question. */
    bool is_asked;
    bool is_stuck;     /* it was seen in an uninterruptible sleep since */
    uint64_t asked_ns; /* for the last time */
    int64_t owed_ns;   /* to charge with the answer */

    bool blocks; /* the signal, or waits for it */
    uint8_t n_blocked;
    bool is_gone;
    uintptr_t start;                        /* routine */
    const struct cpprof__thread_self *self; /* NULL: not known yet */
    uint32_t n_deferred;                    /* looks, which it may be */
};

static void
charge(struct cpprof__wall_sampler *w, const struct cpprof__wall_count *at,
       int64_t ns)
{
    if (ns > 0)
        cpprof__wall_add(&w->counts, at, ns);
}

static void
charge_made_up(struct cpprof__wall_sampler *w,
               const struct cpprof__wall_thread *t, uintptr_t frame,
               enum cpprof__wall_state state, int64_t ns)
{
    const struct cpprof__wall_count at = {
        .stack = cpprof__dump_made_up(frame, t->start), .state = state};

    charge(w, &at, ns);
}

/* ---- the list of threads ---------------------------------------------- */

static bool
take_slot(struct cpprof__wall_sampler *w, uint32_t *slot)
{
    if (w->n_free_slots) {
        *slot = w->free_slots[--w->n_free_slots];
        return true;
    }
    *slot = w->n_slots;
    if (!cpprof__dump_make_slots(CPPROF__DUMP_WALL, w->n_slots + 1))
        return false;
    w->n_slots++;
    return true;
}

/* The array of free slots is long enough for all of them: see merge(). */
static void
give_slot(struct cpprof__wall_sampler *w, const struct cpprof__wall_thread *t)
{
    cpprof__dump_give_up(cpprof__dump_slot(CPPROF__DUMP_WALL, t->slot));
    w->n_open -= t->is_asked;
    w->free_slots[w->n_free_slots++] = t->slot;
}

static bool
add_thread(struct cpprof__wall_sampler *w, struct cpprof__wall_thread *t,
           int32_t tid, const struct cpprof__creation_info *creation)
{
    memset(t, 0, sizeof *t);
    t->tid = tid;
    t->start = creation ? creation->start : 0;
    t->self = cpprof__blocked_thread_self(tid, creation);
    t->first_ns = creation ? w->new_ns : 0;
    return take_slot(w, &t->slot);
}

/* Both lists are sorted. */
static void
merge(struct cpprof__wall_sampler *w, const int32_t *tids, size_t n,
      const struct cpprof__creation_info *creations, size_t n_creations)
{
    struct cpprof__wall_thread *merged = calloc(n + 1, sizeof *merged);
    uint32_t *slots =
        realloc(w->free_slots, (w->n_slots + n + 1) * sizeof *slots);
    size_t i, old = 0, kept = 0;

    if (slots)
        w->free_slots = slots;
    if (!merged || !slots) {
        free(merged);
        return;
    }
    for (i = 0; i < n; i++) {
        while (old < w->n && w->threads[old].tid < tids[i])
            give_slot(w, &w->threads[old++]);
        if (old < w->n && w->threads[old].tid == tids[i])
            merged[kept++] = w->threads[old++];
        else
            kept += add_thread(
                w, &merged[kept], tids[i],
                cpprof__creation_of(creations, n_creations, tids[i]));
    }
    while (old < w->n)
        give_slot(w, &w->threads[old++]);
    free(w->threads);
    w->threads = merged;
    w->n = kept;
    if (kept > w->n_threads_max)
        w->n_threads_max = (uint32_t)kept;
}

/* The known threads that have not ended, and those that were created since:
 * sorted, from malloc. */
static int32_t *
known_threads(const struct cpprof__wall_sampler *w,
              const struct cpprof__creation_info *creations, size_t n_creations,
              size_t *n)
{
    int32_t *tids = calloc(w->n + n_creations + 1, sizeof *tids);
    size_t i, old = 0;

    *n = 0;
    for (i = 0; tids && i < n_creations; i++) {
        while (old < w->n && w->threads[old].tid < creations[i].tid)
            tids[(*n)++] = w->threads[old++].tid;
        if (old < w->n && w->threads[old].tid == creations[i].tid)
            old++;
        if (!creations[i].has_ended)
            tids[(*n)++] = creations[i].tid;
    }
    while (tids && old < w->n)
        tids[(*n)++] = w->threads[old++].tid;
    return tids;
}

/* From /proc, or as far as it is known. */
static void
list_threads(struct cpprof__wall_sampler *w, uint64_t now, bool all)
{
    uint32_t changes = cpprof__thread_creation_changes();
    size_t n = 0, n_creations = 0, i;
    bool is_first;
    struct cpprof__creation_info *creations = cpprof__creations(&n_creations);
    int32_t *tids = all || !creations
                        ? cpprof__tasks(NULL, 0, &n)
                        : known_threads(w, creations, n_creations, &n);

    w->new_ns = w->n ? now - w->listed_ns : 0;
    is_first = !w->n;
    if (tids)
        merge(w, tids, n, creations, n_creations);
    for (i = 0; is_first && i < w->n; i++) {
        /* Their time begins here. */
        w->threads[i].looked_ns = w->start_ns ? w->start_ns : now;
        w->threads[i].n_deferred = PUT_OFF;
    }
    free(tids);
    free(creations);
    w->listed_ns = now;
    w->listed_changes = changes;
    w->list_cost_ns = cpprof__clock_ns(CLOCK_MONOTONIC) - now;
}

static void
keep_list(struct cpprof__wall_sampler *w, uint64_t now)
{
    bool differs = !w->n;

    if (now - w->counted_ns > COUNT_NS) {
        w->counted_ns = now;
        differs |= cpprof__proc_n_threads() != w->n + cpprof__own_threads();
    }
    if (differs || now - w->all_listed_ns >= LIST_NS) {
        w->all_listed_ns = now;
        list_threads(w, now, true);
    } else if (cpprof__thread_creation_changes() != w->listed_changes &&
               now - w->listed_ns > LIST_SHARE * w->list_cost_ns) {
        list_threads(w, now, false);
    } else if (cpprof__thread_creation_changes() == w->listed_changes) {
        w->listed_ns = now; /* nothing to list */
    }
}

/* ---- one thread ------------------------------------------------------- */

static void
take_answer(struct cpprof__wall_sampler *w, struct cpprof__wall_thread *t,
            struct cpprof__dump_slot *slot)
{
    struct cpprof__dump_answer answer;

    /* Takes it before the slot is free for another answer. */
    t->cpu_ns = load_relaxed(&slot->cpu_ns);
    t->self = load_relaxed(&slot->self);
    answer = cpprof__dump_take(slot);
    t->at = (struct cpprof__wall_count){.stack = answer.stack,
                                        .labels = answer.labels};
    t->at.state = answer.waited ? CPPROF__WALL_SLEEPING : CPPROF__WALL_RUNNING;
    t->has_answer = t->is_fresh = true;
    t->is_asked = false;
    t->n_blocked = 0;
    w->n_open--;
    if (t->is_stuck) {
        struct cpprof__wall_count at = t->at;

        at.state = CPPROF__WALL_UNINTERRUPTIBLE;
        charge(w, &at, t->owed_ns);
    } else {
        charge(w, &t->at, t->owed_ns);
    }
    t->owed_ns = 0;
    t->is_stuck = false;
}

/* Does it block the signal? A thread does so inside a handler, where it may
 * lose its processor. So of a thread that does not sleep this is believed only
 * after it was seen several times. */
static bool
note_mask(struct cpprof__wall_thread *t, const struct cpprof__task *task)
{
    if (!cpprof__task_blocks(task, CPPROF__SIGNAL))
        t->n_blocked = 0;
    else if (task->state == 'S')
        t->n_blocked = MASK_LOOKS;
    else if (t->n_blocked < MASK_LOOKS)
        t->n_blocked++;
    t->blocks = t->n_blocked == MASK_LOOKS;
    return t->blocks;
}

/* It will not answer soon. */
static void
leave_alone(struct cpprof__wall_sampler *w, struct cpprof__wall_thread *t)
{
    if (!cpprof__dump_give_up(cpprof__dump_slot(CPPROF__DUMP_WALL, t->slot)))
        return; /* it did */
    charge_made_up(w, t, CPPROF__FRAME_BLOCKED, CPPROF__WALL_SLEEPING,
                   t->owed_ns);
    t->owed_ns = 0;
    t->is_asked = t->has_answer = t->is_stuck = false;
    w->n_open--;
}

/* It has not answered: why? */
static void
look_closer(struct cpprof__wall_sampler *w, struct cpprof__wall_thread *t,
            uint64_t now)
{
    struct cpprof__task task;

    if (!cpprof__task_look(CPPROF__NO_FOLDER, t->tid, &task)) {
        t->is_gone = true;
        return;
    }
    t->is_stuck |= task.state == 'D';
    if (note_mask(t, &task)) {
        leave_alone(w, t);
        return;
    }
    if (now - t->asked_ns < AGAIN_NS)
        return;
    t->asked_ns = now;
    cpprof__dump_send(t->tid, cpprof__dump_repeat(CPPROF__DUMP_WALL, t->slot));
}

void
cpprof__wall_sampler_answers(struct cpprof__wall_sampler *w, bool late)
{
    uint64_t now = late ? cpprof__clock_ns(CLOCK_MONOTONIC) : 0;
    size_t i;

    for (i = 0; w->n_open && i < w->n; i++) {
        struct cpprof__wall_thread *t = &w->threads[i];
        struct cpprof__dump_slot *slot;

        if (!t->is_asked)
            continue;
        slot = cpprof__dump_slot(CPPROF__DUMP_WALL, t->slot);
        if (cpprof__dump_state(slot) == CPPROF__DUMP_ANSWERED)
            take_answer(w, t, slot);
        else if (late && cpprof__dump_state(slot) == CPPROF__DUMP_ASKED)
            look_closer(w, t, now);
    }
}

static void
ask(struct cpprof__wall_sampler *w, struct cpprof__wall_thread *t, uint64_t now)
{
    uint64_t value = cpprof__dump_ask(CPPROF__DUMP_WALL, t->slot, t->tid);

    t->is_asked = true;
    w->n_open++;
    t->asked_ns = now;
    t->is_gone = cpprof__dump_send(t->tid, value) == ESRCH;
    w->n_asked++;
}

/* May it be sent a signal? */
static void
look_at_mask(struct cpprof__wall_thread *t, uint64_t now)
{
    struct cpprof__task task;

    if (t->masked_ns && now - t->masked_ns < MASK_NS)
        return;
    t->masked_ns = now;
    t->is_gone = !cpprof__task_look(CPPROF__NO_FOLDER, t->tid, &task);
    if (!note_mask(t, &task))
        t->blocks = task.state == 'S' &&
                    cpprof__task_sigwaits(CPPROF__NO_FOLDER, t->tid);
}

/* It is not asked: its stack is not known, but its CPU time is. */
static void
charge_blocked(struct cpprof__wall_sampler *w, struct cpprof__wall_thread *t,
               uint64_t cpu, int64_t ns)
{
    bool ran = 2 * (int64_t)(cpu - t->cpu_ns) > ns;

    charge_made_up(w, t, CPPROF__FRAME_BLOCKED,
                   ran ? CPPROF__WALL_RUNNING : CPPROF__WALL_SLEEPING, ns);
    t->cpu_ns = cpu;
}

static bool
has_slept(const struct cpprof__wall_thread *t, uint64_t cpu)
{
    return t->has_answer && t->at.state != CPPROF__WALL_RUNNING &&
           cpu - t->cpu_ns <= (t->is_fresh ? RETURN_NS : 0);
}

/*
 * Is it in a sleep that a question would end? Then it is read from outside.
 * *later: it is not in one now, but often is, and now waits for a processor,
 * perhaps still on its way out of such a sleep, or runs only for a moment.
 */
static bool
see_asleep(struct cpprof__wall_thread *t, uint64_t cpu, bool *later)
{
    const struct cpprof__blocked_thread_who who = {CPPROF__NO_FOLDER, t->tid,
                                                   t->self};
    struct cpprof__blocked_thread blocked;
    enum cpprof__blocked_thread_result state =
        cpprof__blocked_thread_read(CPPROF__DUMP_WALL, &who, &blocked);

    bool ran = t->has_answer && cpu - t->cpu_ns >= MOMENT_NS;
    bool is_ready = state == CPPROF__BLOCKED_READY;

    *later = t->n_deferred && !ran && (is_ready || t->has_answer);
    if (state != CPPROF__BLOCKED_READ) {
        t->n_deferred -= *later;
        return false;
    }
    *later = false;
    t->at = (struct cpprof__wall_count){.stack = blocked.answer.stack,
                                        .labels = blocked.answer.labels,
                                        .state = CPPROF__WALL_SLEEPING};
    t->cpu_ns = blocked.cpu_ns;
    t->has_answer = true;
    t->is_fresh = false;
    t->n_deferred = PUT_OFF;
    return true;
}

/* nominal_ns: the time between two looks at a thread. True: it was asked. */
static bool
look_at(struct cpprof__wall_sampler *w, struct cpprof__wall_thread *t,
        uint64_t now, uint64_t nominal_ns)
{
    uint64_t cpu = cpprof__clock_ns(CPPROF__THREAD_CPU_CLOCK(t->tid));
    uint64_t before = t->looked_ns;
    bool later;
    int64_t ns;

    if (t->looked_ns)
        ns = (int64_t)(now - t->looked_ns);
    else
        ns = (int64_t)(t->first_ns > nominal_ns ? t->first_ns : nominal_ns);
    w->n_looks++;
    t->looked_ns = now;
    if (t->is_asked) {
        t->owed_ns += ns;
        return false;
    }
    if (has_slept(t, cpu)) {
        t->cpu_ns = cpu;
        t->is_fresh = false;
        charge(w, &t->at, ns);
        return false;
    }
    if (see_asleep(t, cpu, &later)) {
        charge(w, &t->at, ns);
        return false;
    }
    if (later) {
        t->looked_ns = before;
        return false;
    }
    look_at_mask(t, now);
    if (t->is_gone)
        return false;
    if (t->blocks) {
        charge_blocked(w, t, cpu, ns);
        return false;
    }
    t->owed_ns = ns;
    ask(w, t, now);
    return true;
}

/* ---- a tick ----------------------------------------------------------- */

/* The first thread after that tid, in a circle. */
static size_t
next_after(const struct cpprof__wall_sampler *w, int32_t tid)
{
    size_t lo = 0, hi = w->n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (w->threads[mid].tid <= tid)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < w->n ? lo : 0;
}

size_t
cpprof__wall_sampler_tick(struct cpprof__wall_sampler *w)
{
    uint64_t now = cpprof__clock_ns(CLOCK_MONOTONIC), nominal_ns;
    size_t i, at, n_looks, n_asked = 0;

    cpprof__wall_sampler_answers(w, true);
    keep_list(w, now);
    if (!w->n)
        return 0;
    n_looks = w->n < w->max_looks ? w->n : w->max_looks;
    nominal_ns = w->period_ns * w->n / n_looks;
    at = next_after(w, w->last_tid);
    for (i = 0; i < n_looks; i++) {
        struct cpprof__wall_thread *t = &w->threads[at];

        w->last_tid = t->tid;
        if (!t->is_gone)
            n_asked += look_at(w, t, now, nominal_ns);
        at = at + 1 < w->n ? at + 1 : 0;
    }
    return n_asked;
}

/* Charge the time since the last look to the stack that the thread had then. So
 * a thread that lived all the while is charged for all of it. */
static void
charge_rest(struct cpprof__wall_sampler *w, struct cpprof__wall_thread *t,
            uint64_t now)
{
    int64_t ns = (int64_t)(now - t->looked_ns);

    if (t->is_gone || !t->looked_ns ||
        !cpprof__clock_ns(CPPROF__THREAD_CPU_CLOCK(t->tid)))
        return;
    if (t->is_asked &&
        cpprof__dump_give_up(cpprof__dump_slot(CPPROF__DUMP_WALL, t->slot)))
        charge_made_up(w, t, CPPROF__FRAME_SILENT,
                       t->is_stuck ? CPPROF__WALL_UNINTERRUPTIBLE
                                   : CPPROF__WALL_SLEEPING,
                       t->owed_ns + ns);
    else if (t->blocks)
        charge_made_up(w, t, CPPROF__FRAME_BLOCKED, CPPROF__WALL_SLEEPING, ns);
    else if (t->has_answer)
        charge(w, &t->at, ns);
}

void
cpprof__wall_sampler_charge(struct cpprof__wall_sampler *w)
{
    uint64_t now = cpprof__clock_ns(CLOCK_MONOTONIC);
    size_t i;

    cpprof__wall_sampler_answers(w, false);
    for (i = 0; i < w->n; i++) {
        struct cpprof__wall_thread *t = &w->threads[i];

        /* A thread that has not answered keeps all its time until it does. */
        if (t->is_asked || !(t->blocks || t->has_answer) || !t->looked_ns)
            continue;
        charge_rest(w, t, now);
        t->looked_ns = now;
    }
}

void
cpprof__wall_sampler_end(struct cpprof__wall_sampler *w)
{
    uint64_t now = cpprof__clock_ns(CLOCK_MONOTONIC);
    size_t i;

    cpprof__wall_sampler_answers(w, false);
    for (i = 0; i < w->n; i++)
        charge_rest(w, &w->threads[i], now);
}

void
cpprof__wall_sampler_free(struct cpprof__wall_sampler *w)
{
    size_t i;

    for (i = 0; i < w->n; i++)
        cpprof__dump_give_up(
            cpprof__dump_slot(CPPROF__DUMP_WALL, w->threads[i].slot));
    cpprof__wall_counts_free(&w->counts);
    free(w->threads);
    free(w->free_slots);
    memset(w, 0, sizeof *w);
}
