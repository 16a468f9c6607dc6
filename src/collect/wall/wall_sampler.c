/* SPDX-License-Identifier: MIT */
/*
 * The looks of a wall profile: which threads there are, what each did since
 * its last look, and whether it has to be asked.
 *
 * A thread whose CPU clock stood still has slept all the time and is charged
 * where it stood. A thread that sleeps is read from outside
 * (dump/blocked_thread.h). One that runs is asked (signal/sample/dump.h): the
 * question comes to it when it runs, and to nobody who sleeps. So it may be
 * open for a while, and what the thread is owed is charged to the answer, which
 * is where it runs. Each thread has a slot for questions as long as it is
 * known.
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
#include "collect/runtime/own_threads.h"
#include "collect/runtime/proc.h"
#include "own/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Tunables. The threads are counted this often, and listed when there are not
 * as many as are known, and now and then; and whenever one that we know of
 * started or ended, if that costs no more than 1 % of a processor: of time that
 * others had meanwhile the list is not to blame. */
#define COUNT_NS   1000000000u
#define LIST_NS    10000000000u
#define LIST_SHARE 100u
struct cpprof__wall_thread {
    int32_t tid;
    uint32_t slot;
    uint64_t looked_ns; /* CLOCK_MONOTONIC; 0: never */
    uint64_t cpu_ns;    /* its clock at the last look */
    uint64_t first_ns;  /* time that its first look stands for; 0: the usual */
    uint64_t made_ns;   /* CLOCK_MONOTONIC; 0: not known */
    int64_t ahead_ns;   /* its first look was charged for so much more than the
                         * time since made_ns */

    /* Where it was at the last look, or at its last answer. */
    bool is_known;
    bool has_slept; /* it has stood at `at` since its clock was cpu_ns */
    struct cpprof__wall_count at;

    /* The question. */
    bool is_asked;
    int64_t owed_ns; /* to charge with the answer */

    bool is_gone;
    uintptr_t start;                        /* routine */
    const struct cpprof__thread_self *self; /* NULL: not known yet */
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

/* Since when its time is to be charged; 0: not known. */
static uint64_t
made_ns(const struct cpprof__wall_sampler *w,
        const struct cpprof__creation_info *creation, uint64_t now)
{
    uint64_t started = creation ? creation->started_ns : 0;

    if (started > now)
        return now;
    return started && started < w->start_ns ? w->start_ns : started;
}

static bool
add_thread(struct cpprof__wall_sampler *w, struct cpprof__wall_thread *t,
           int32_t tid, const struct cpprof__creation_info *creation,
           uint64_t now)
{
    memset(t, 0, sizeof *t);
    t->tid = tid;
    t->start = creation ? creation->start : 0;
    t->self = cpprof__blocked_thread_self(tid, creation);
    t->first_ns = creation ? w->new_ns : 0;
    t->made_ns = made_ns(w, creation, now);
    return take_slot(w, &t->slot);
}

/* Both lists are sorted. */
static void
merge(struct cpprof__wall_sampler *w, uint64_t now, const int32_t *tids,
      size_t n, const struct cpprof__creation_info *creations,
      size_t n_creations)
{
    struct cpprof__wall_thread *merged = cpprof__calloc(n + 1, sizeof *merged);
    uint32_t *slots =
        cpprof__realloc(w->free_slots, (w->n_slots + n + 1) * sizeof *slots);
    size_t i, old = 0, kept = 0;

    if (slots)
        w->free_slots = slots;
    if (!merged || !slots) {
        cpprof__free(merged);
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
                cpprof__creation_of(creations, n_creations, tids[i]), now);
    }
    while (old < w->n)
        give_slot(w, &w->threads[old++]);
    cpprof__free(w->threads);
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
    int32_t *tids = cpprof__calloc(w->n + n_creations + 1, sizeof *tids);
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
    uint64_t cpu_ns = cpprof__clock_ns(CLOCK_THREAD_CPUTIME_ID);
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
        merge(w, now, tids, n, creations, n_creations);
    for (i = 0; is_first && i < w->n; i++) /* none was there before */
        w->threads[i].looked_ns =
            w->threads[i].made_ns ? w->threads[i].made_ns : w->start_ns;
    cpprof__free(tids);
    cpprof__free(creations);
    w->listed_ns = now;
    w->listed_changes = changes;
    w->list_cost_ns = cpprof__clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
}

static void
keep_list(struct cpprof__wall_sampler *w, uint64_t now)
{
    bool differs = !w->n;
    size_t i;

    if (now - w->counted_ns > COUNT_NS) {
        w->counted_ns = now;
        differs |= cpprof__proc_n_threads() != w->n + cpprof__own_threads();
        for (i = 0; i < w->n; i++) /* another may have come in its stead */
            differs |= w->threads[i].is_gone;
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
    struct cpprof__wall_count at;

    /* Takes it before the slot is free for another answer. */
    t->self = load_relaxed(&slot->self);
    answer = cpprof__dump_take(slot);
    at = (struct cpprof__wall_count){.stack = answer.stack,
                                     .labels = answer.labels,
                                     .state = CPPROF__WALL_RUNNING};
    if (!t->has_slept) {
        t->at = at;
        t->is_known = true;
    }
    t->is_asked = false;
    w->n_open--;
    charge(w, &at, t->owed_ns);
    t->owed_ns = 0;
}

void
cpprof__wall_sampler_answers(struct cpprof__wall_sampler *w)
{
    size_t i;

    for (i = 0; w->n_open && i < w->n; i++) {
        struct cpprof__wall_thread *t = &w->threads[i];
        struct cpprof__dump_slot *slot;

        if (!t->is_asked)
            continue;
        slot = cpprof__dump_slot(CPPROF__DUMP_WALL, t->slot);
        if (cpprof__dump_state(slot) == CPPROF__DUMP_ANSWERED)
            take_answer(w, t, slot);
    }
}

/* Ask, or ask again. */
static void
ask(struct cpprof__wall_sampler *w, struct cpprof__wall_thread *t)
{
    if (!t->is_asked) {
        cpprof__dump_ask(CPPROF__DUMP_WALL, t->slot, t->tid);
        t->is_asked = true;
        w->n_open++;
        w->n_asked++;
    }
    cpprof__dump_send(CPPROF__DUMP_WALL, t->slot, t->tid);
}

/* It is not to be waited for: what it is owed is charged without an answer. */
static void
charge_owed(struct cpprof__wall_sampler *w, struct cpprof__wall_thread *t,
            int64_t ns)
{
    if (t->is_known && t->at.state == CPPROF__WALL_RUNNING)
        charge(w, &t->at, ns);
    else
        charge_made_up(w, t, CPPROF__FRAME_SILENT, CPPROF__WALL_RUNNING, ns);
}

static void
give_question_up(struct cpprof__wall_sampler *w, struct cpprof__wall_thread *t)
{
    struct cpprof__dump_slot *slot =
        cpprof__dump_slot(CPPROF__DUMP_WALL, t->slot);

    if (!t->is_asked)
        return;
    if (!cpprof__dump_give_up(slot)) {
        take_answer(w, t, slot);
        return;
    }
    charge_owed(w, t, t->owed_ns);
    t->owed_ns = 0;
    t->is_asked = false;
    w->n_open--;
}

/* Where it is, if it sleeps. */
static enum cpprof__blocked_thread_result
see_asleep(struct cpprof__wall_thread *t)
{
    const struct cpprof__blocked_thread_who who = {CPPROF__NO_FOLDER, t->tid,
                                                   t->self};
    struct cpprof__blocked_thread blocked;
    enum cpprof__blocked_thread_result result =
        cpprof__blocked_thread_read(CPPROF__DUMP_WALL, &who, &blocked);

    t->has_slept = result == CPPROF__BLOCKED_READ;
    if (!t->has_slept)
        return result;
    t->at = (struct cpprof__wall_count){
        .stack = blocked.answer.stack,
        .labels = blocked.answer.labels,
        .state = blocked.is_stuck ? CPPROF__WALL_UNINTERRUPTIBLE
                                  : CPPROF__WALL_SLEEPING};
    t->cpu_ns = blocked.cpu_ns;
    t->is_known = true;
    return result;
}

/* It cannot be read. If its clock stood still it slept, and otherwise its clock
 * says for how long it did not. */
static void
charge_unreadable(struct cpprof__wall_sampler *w, struct cpprof__wall_thread *t,
                  uint64_t cpu, int64_t ns)
{
    int64_t ran = t->cpu_ns ? (int64_t)(cpu - t->cpu_ns) : 0;

    if (ran > ns)
        ran = ns;
    charge_made_up(w, t, CPPROF__FRAME_UNREADABLE, CPPROF__WALL_SLEEPING,
                   ns - ran);
    t->at = (struct cpprof__wall_count){
        .stack = cpprof__dump_made_up(CPPROF__FRAME_UNREADABLE, t->start),
        .state = CPPROF__WALL_SLEEPING};
    t->has_slept = t->is_known = true;
    t->cpu_ns = cpu;
    if (ran <= 0)
        return;
    t->owed_ns += ran;
    ask(w, t);
}

/* The time that a look is charged with. nominal_ns: that between two looks at a
 * thread. */
static int64_t
time_of_look(struct cpprof__wall_thread *t, uint64_t now, uint64_t nominal_ns)
{
    int64_t ns;

    if (t->looked_ns)
        return (int64_t)(now - t->looked_ns);
    ns = (int64_t)(t->first_ns > nominal_ns ? t->first_ns : nominal_ns);
    if (t->made_ns)
        t->ahead_ns = ns - (int64_t)(now - t->made_ns);
    return ns;
}

static void
look_at(struct cpprof__wall_sampler *w, struct cpprof__wall_thread *t,
        uint64_t now, uint64_t nominal_ns)
{
    uint64_t cpu = cpprof__clock_ns(CPPROF__THREAD_CPU_CLOCK(t->tid));
    int64_t ns = time_of_look(t, now, nominal_ns);

    w->n_looks++;
    t->looked_ns = now;
    t->is_gone = !cpu;
    if (t->is_gone) {
        give_question_up(w, t);
        return;
    }
    if (t->has_slept && cpu == t->cpu_ns) {
        w->n_quiet++;
        charge(w, &t->at, ns);
        return;
    }
    w->n_quiet = 0;
    switch (see_asleep(t)) {
    case CPPROF__BLOCKED_READ:
        charge(w, &t->at, ns);
        break;
    case CPPROF__BLOCKED_UNREADABLE:
        charge_unreadable(w, t, cpu, ns);
        break;
    case CPPROF__BLOCKED_NOT:
        t->cpu_ns = cpu;
        t->owed_ns += ns;
        ask(w, t);
        break;
    }
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

void
cpprof__wall_sampler_tick(struct cpprof__wall_sampler *w)
{
    uint64_t now = cpprof__clock_ns(CLOCK_MONOTONIC), nominal_ns;
    size_t i, at, n_looks;

    cpprof__wall_sampler_answers(w);
    keep_list(w, now);
    if (!w->n)
        return;
    n_looks = w->n < w->max_looks ? w->n : w->max_looks;
    nominal_ns = w->period_ns * w->n / n_looks;
    at = next_after(w, w->last_tid);
    for (i = 0; i < n_looks; i++) {
        struct cpprof__wall_thread *t = &w->threads[at];

        w->last_tid = t->tid;
        if (!t->is_gone)
            look_at(w, t, now, nominal_ns);
        at = at + 1 < w->n ? at + 1 : 0;
    }
}

/* Charge the time since the last look to the stack that the thread had then. So
 * a thread that lives is charged for its time until now, and not for what was
 * to make up for a rest that nobody is charged for. One that had no turn yet is
 * looked at. */
static void
charge_rest(struct cpprof__wall_sampler *w, struct cpprof__wall_thread *t,
            uint64_t now)
{
    int64_t ns;

    if (!t->looked_ns)
        t->looked_ns = t->made_ns;
    if (t->is_gone || !t->looked_ns)
        return;
    if (!t->is_known && !t->is_asked) {
        look_at(w, t, now, 0);
        return;
    }
    if (!cpprof__clock_ns(CPPROF__THREAD_CPU_CLOCK(t->tid)))
        return;
    ns = (int64_t)(now - t->looked_ns) - t->ahead_ns;
    t->ahead_ns = ns < 0 ? -ns : 0;
    if (t->has_slept || !t->is_asked)
        charge(w, &t->at, ns);
    else if (ns > 0)
        t->owed_ns += ns;
    t->looked_ns = now;
}

void
cpprof__wall_sampler_charge(struct cpprof__wall_sampler *w, uint64_t now)
{
    size_t i;

    cpprof__wall_sampler_answers(w);
    for (i = 0; i < w->n; i++)
        charge_rest(w, &w->threads[i], now);
}

/* Whoever runs has as long to answer as it takes to charge all. */
void
cpprof__wall_sampler_end(struct cpprof__wall_sampler *w, uint64_t now)
{
    size_t i;

    cpprof__wall_sampler_charge(w, now);
    cpprof__wall_sampler_answers(w);
    for (i = 0; i < w->n; i++)
        give_question_up(w, &w->threads[i]);
}

void
cpprof__wall_sampler_free(struct cpprof__wall_sampler *w)
{
    size_t i;

    for (i = 0; i < w->n; i++)
        cpprof__dump_give_up(
            cpprof__dump_slot(CPPROF__DUMP_WALL, w->threads[i].slot));
    cpprof__wall_counts_free(&w->counts);
    cpprof__free(w->threads);
    cpprof__free(w->free_slots);
    memset(w, 0, sizeof *w);
}
