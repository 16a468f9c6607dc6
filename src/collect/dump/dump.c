/* SPDX-License-Identifier: MIT */
/*
 * A dump of all threads: lists them, reads the sleeping ones from outside,
 * asks the others by a timer that needs them to run, and collects answers until
 * all have come or time is up. Who falls asleep meanwhile is read from outside.
 *
 * Invariants: one dump at a time; a question that was given up can still be
 * answered, into nothing (sample/dump.h); a thread that cannot be asked is
 * listed with what /proc says.
 */
#include "collect/dump/dump.h"
#include "arch/clock.h"
#include "own/memory.h"

#include "arch/atomic.h"
#include "arch/place.h"
#include "base/status.h"
#include "collect/encode/builder.h"
#include "collect/runtime/loader.h"
#include "collect/runtime/own_lock.h"
#include "collect/runtime/own_threads.h"
#include "collect/signal/sample/question_timer.h"
#include "collect/signal/sample/sampler.h"
#include "collect/signal/tables/reserve.h"
#include "collect/store/tables.h"
#include "collect/threads/action.h"
#include "collect/threads/wait_clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Tunables. A thread that runs answers when it gets a processor: wait for that
 * as long as answers come, and this long after the last one. More helps on a
 * machine that is very busy and delays a dump in which somebody is silent. */
#define TIMEOUT_NS 1000000000u
/* The same, when all threads that are left are stopped or sleep
 * uninterruptibly. */
#define STUCK_NS 100000000u
/* The limit of all: for programs with very many running threads. */
#define DEADLINE_NS 5000000000u
/* Pauses between looks at the slots, and questions asked again. */
#define PAUSE_MIN_NS 20000u
#define PAUSE_MAX_NS 2000000u
#define AGAIN_NS     20000000u

static struct cpprof__own_lock lock CPPROF__AT_START; /* one dump at a time */

/* ---- asking ----------------------------------------------------------- */

enum cpprof_status
cpprof__dump_start_reading(struct cpprof_error *error)
{
    enum cpprof_status status = cpprof__tables_make(error);

    if (status != CPPROF_OK)
        return status;
    store_release(&cpprof__dump_tree, &cpprof__tables.tree);
    cpprof__loader_refresh();
    return CPPROF_OK;
}

enum cpprof_status
cpprof__dump_start(struct cpprof_error *error)
{
    enum cpprof_status status = cpprof__dump_start_reading(error);
    int failed;

    if (status != CPPROF_OK)
        return status;
    failed = cpprof__action_install();
    if (failed)
        return cpprof__fail(error, CPPROF_SYSTEM, failed, "sigaction: %s",
                            cpprof__action_error(failed));
    return CPPROF_OK;
}

bool
cpprof__dump_make_slots(enum cpprof__dump_user user, uint32_t n)
{
    uint32_t i;

    if (n > CPPROF__MAX_THREADS)
        return false;
    for (i = 0; i * CPPROF__DUMP_PER_CHUNK < n; i++)
        if (!cpprof__reserve_once((void **)&cpprof__dump_slots[user][i],
                                  CPPROF__DUMP_PER_CHUNK *
                                      sizeof(struct cpprof__dump_slot)))
            return false;
    return true;
}

int
cpprof__dump_send(enum cpprof__dump_user user, uint32_t index, int32_t tid)
{
    struct cpprof__dump_slot *slot = cpprof__dump_slot(user, index);

    return cpprof__question_send(tid, cpprof__dump_value(user, index),
                                 &slot->place);
}

uint32_t
cpprof__dump_made_up(uintptr_t frame, uintptr_t start)
{
    uintptr_t pcs[2] = {frame, start};

    return cpprof__tree_add(&cpprof__tables.tree, pcs, start ? 2 : 1);
}

CPPROF__FIRST_STEP void
cpprof__dump_in_child(void)
{
    cpprof__questions_in_child();
    cpprof__dump_forked();
    cpprof__own_lock_in_child(&lock);
}

/* ---- a dump ----------------------------------------------------------- */

/* The caller's stack without our own frames: from the frame on that returns to
 * the given address. */
static uint32_t
cut_at(uint32_t stack, uintptr_t above)
{
    struct cpprof__tree_node node;
    uint32_t number = stack;

    above = cpprof__strip_return_address(above);
    while (number && cpprof__tree_node(&cpprof__tables.tree, number, &node)) {
        if (node.pc == above - 1)
            return number;
        number = node.parent;
    }
    return stack;
}

static void
see_self(struct cpprof__dump_thread *t,
         const struct cpprof__dump_wanted *wanted)
{
    struct cpprof__dump_answer answer;

    t->how = CPPROF__DUMP_HAS_STACK;
    if (!cpprof__dump_own(CPPROF__DUMP_ALL, &answer))
        return;
    t->stack = cut_at(answer.stack, wanted->above);
    t->labels = answer.labels;
}

static bool
is_dead(char state)
{
    return state == 'Z' || state == 'X' || state == 'x';
}

/* ---- one look at each ------------------------------------------------- */

struct looks {
    struct cpprof__dump *dump;
    bool details;
    int folder;
    struct cpprof__wait_clock clock;
};

/* Does it sleep? Then it is read from outside and not disturbed. */
static enum cpprof__blocked_thread_result
see_asleep(struct cpprof__dump_thread *t,
           const struct cpprof__blocked_thread_who *who)
{
    struct cpprof__blocked_thread blocked;
    enum cpprof__blocked_thread_result result =
        cpprof__blocked_thread_read(CPPROF__DUMP_ALL, who, &blocked);

    if (result != CPPROF__BLOCKED_READ)
        return result;
    t->how = CPPROF__DUMP_HAS_STACK;
    t->stack = blocked.answer.stack;
    t->labels = blocked.answer.labels;
    t->wait = blocked.wait;
    return result;
}

static struct cpprof__blocked_thread_who
who_is(const struct cpprof__dump *dump, int folder, int32_t tid)
{
    const struct cpprof__creation_info *creation =
        cpprof__creation_of(dump->creations, dump->n_creations, tid);

    return (struct cpprof__blocked_thread_who){
        folder, tid, cpprof__blocked_thread_self(tid, creation)};
}

/* Until the answer comes a thread counts as silent. */
static void
ask(struct cpprof__dump *dump, size_t i)
{
    struct cpprof__dump_thread *t = &dump->threads[i];

    cpprof__dump_ask(CPPROF__DUMP_ALL, (uint32_t)i, t->tid);
    t->how = CPPROF__DUMP_SILENT;
    if (cpprof__dump_send(CPPROF__DUMP_ALL, (uint32_t)i, t->tid) == ESRCH)
        t->how = CPPROF__DUMP_GONE;
}

static void
add_details(struct looks *l, struct cpprof__dump_thread *t)
{
    uint64_t began = 0;

    cpprof__task_wchan(l->folder, t->tid, t->wchan, sizeof t->wchan);
    if (t->task.state != 'R' && !t->wait.kind)
        began = cpprof__wait_began(&l->clock, l->folder, t->tid);
    if (began)
        t->idle_ns = cpprof__now_ns(CLOCK_MONOTONIC) - began;
}

static void
look(struct looks *l, size_t i)
{
    struct cpprof__dump_thread *t = &l->dump->threads[i];
    const struct cpprof__blocked_thread_who who =
        who_is(l->dump, l->folder, t->tid);
    enum cpprof__blocked_thread_result result = CPPROF__BLOCKED_READ;

    t->how = CPPROF__DUMP_HAS_STACK;
    if (t->tid != l->dump->caller)
        result = see_asleep(t, &who);
    if (result == CPPROF__BLOCKED_READ && !l->details)
        return;
    if (!cpprof__task_look(l->folder, t->tid, &t->task) ||
        is_dead(t->task.state)) {
        t->how = CPPROF__DUMP_GONE;
        return;
    }
    if (l->details)
        add_details(l, t);
    if (result == CPPROF__BLOCKED_UNREADABLE && t->task.state != 'R')
        t->how = CPPROF__DUMP_UNREADABLE;
    else if (result != CPPROF__BLOCKED_READ)
        ask(l->dump, i);
}

static void
look_at_all(struct cpprof__dump *dump, bool details)
{
    struct looks looks = {dump, details, cpprof__tasks_folder(), {{0}}};
    size_t i;

    for (i = 0; i < dump->n; i++)
        look(&looks, i);
    if (looks.folder >= 0)
        close(looks.folder);
}

/* ---- the answers ------------------------------------------------------ */

static bool
is_asked(const struct cpprof__dump *dump, size_t i)
{
    return dump->threads[i].how == CPPROF__DUMP_SILENT;
}

/* Take the answer if it has come. */
static bool
take(struct cpprof__dump *dump, size_t i)
{
    struct cpprof__dump_slot *slot =
        cpprof__dump_slot(CPPROF__DUMP_ALL, (uint32_t)i);
    struct cpprof__dump_thread *t = &dump->threads[i];
    struct cpprof__dump_answer answer;

    if (cpprof__dump_state(slot) != CPPROF__DUMP_ANSWERED)
        return false;
    t->wait = cpprof__dump_wait(slot);
    answer = cpprof__dump_take(slot);
    t->stack = answer.stack;
    t->labels = answer.labels;
    t->how = CPPROF__DUMP_HAS_STACK;
    return true;
}

/* Look again at a thread that does not answer: it may have fallen asleep.
 * Returns whether it may still answer soon. */
static bool
ask_again(struct cpprof__dump *dump, size_t i)
{
    struct cpprof__dump_thread *t = &dump->threads[i];
    const struct cpprof__blocked_thread_who who =
        who_is(dump, CPPROF__NO_FOLDER, t->tid);
    struct cpprof__task task;

    if (!cpprof__task_look(CPPROF__NO_FOLDER, t->tid, &task) ||
        is_dead(task.state)) {
        t->how = CPPROF__DUMP_GONE;
        return false;
    }
    t->task.state = task.state;
    if (see_asleep(t, &who) == CPPROF__BLOCKED_READ) {
        if (!cpprof__dump_give_up(
                cpprof__dump_slot(CPPROF__DUMP_ALL, (uint32_t)i)))
            take(dump, i);
        return false;
    }
    if (cpprof__dump_send(CPPROF__DUMP_ALL, (uint32_t)i, t->tid) == ESRCH)
        t->how = CPPROF__DUMP_GONE;
    return !strchr("DTtIP", task.state);
}

/* Take the answers that came since the last look. *first: all threads before it
 * have answered. */
static size_t
take_answers(struct cpprof__dump *dump, size_t *first)
{
    size_t i, n = 0;

    for (i = *first; i < dump->n; i++)
        if (is_asked(dump, i))
            n += take(dump, i);
    while (*first < dump->n && !is_asked(dump, *first))
        ++*first;
    return n;
}

static size_t
ask_all_again(struct cpprof__dump *dump, size_t first)
{
    size_t i, n = 0;

    for (i = first; i < dump->n; i++)
        if (is_asked(dump, i))
            n += ask_again(dump, i);
    return n;
}

/* A thread of the program that changes its credentials waits for those of ours
 * to leave, and may be the one that does not answer. */
static bool
has_to_leave(void)
{
    return cpprof__own_thread_is_this() && cpprof__own_threads_pause_now();
}

static void
wait_for_answers(struct cpprof__dump *dump)
{
    uint64_t begin = cpprof__now_ns(CLOCK_MONOTONIC), progress = begin,
             asked = begin;
    uint64_t pause = PAUSE_MIN_NS;
    uint64_t timeout = TIMEOUT_NS;
    size_t first = 0;

    for (;;) {
        uint64_t now;
        size_t n = take_answers(dump, &first);

        now = cpprof__now_ns(CLOCK_MONOTONIC);
        if (n)
            progress = now;
        if (first == dump->n || now - progress > timeout ||
            now - begin > DEADLINE_NS || has_to_leave())
            return;
        if (now - asked > AGAIN_NS) {
            timeout = ask_all_again(dump, first) ? TIMEOUT_NS : STUCK_NS;
            asked = cpprof__now_ns(CLOCK_MONOTONIC);
        }
        cpprof__sleep_ns(pause);
        pause = n || 2 * pause > PAUSE_MAX_NS ? pause : 2 * pause;
    }
}

/* A thread that is still silent gets a made-up stack. Its answer is ignored
 * when it comes. */
static void
give_up(struct cpprof__dump *dump, size_t i)
{
    struct cpprof__dump_thread *t = &dump->threads[i];
    struct cpprof__dump_slot *slot =
        cpprof__dump_slot(CPPROF__DUMP_ALL, (uint32_t)i);

    if (is_asked(dump, i) && !cpprof__dump_give_up(slot))
        take(dump, i);
    if (t->how == CPPROF__DUMP_GONE)
        cpprof__dump_give_up(slot);
    if (is_asked(dump, i) &&
        !cpprof__task_look(CPPROF__NO_FOLDER, t->tid, &t->task))
        t->how = CPPROF__DUMP_GONE;
}

static void
make_up(struct cpprof__dump *dump, size_t i)
{
    struct cpprof__dump_thread *t = &dump->threads[i];
    const struct cpprof__creation_info *creation =
        cpprof__creation_of(dump->creations, dump->n_creations, t->tid);
    uintptr_t frame = CPPROF__FRAME_LOST;

    if (t->how == CPPROF__DUMP_HAS_STACK && t->stack)
        return;
    if (t->how == CPPROF__DUMP_SILENT)
        frame = CPPROF__FRAME_SILENT;
    else if (t->how == CPPROF__DUMP_UNREADABLE)
        frame = CPPROF__FRAME_UNREADABLE;
    t->stack = cpprof__dump_made_up(frame, creation ? creation->start : 0);
}

static void
finish(struct cpprof__dump *dump)
{
    size_t i, kept = 0;

    for (i = 0; i < dump->n; i++) {
        if (dump->threads[i].tid != dump->caller)
            give_up(dump, i);
        make_up(dump, i);
    }
    for (i = 0; i < dump->n; i++)
        if (dump->threads[i].how != CPPROF__DUMP_GONE)
            dump->threads[kept++] = dump->threads[i];
    dump->n = kept;
}

static enum cpprof_status
list(struct cpprof__dump *dump, struct cpprof_error *error)
{
    enum cpprof_status status = cpprof__tasks_check(error);
    size_t i, n = 0;
    int32_t *tids;

    if (status != CPPROF_OK)
        return status;
    dump->creations = cpprof__creations(&dump->n_creations);
    tids = cpprof__live_threads(dump->creations, dump->n_creations, &n);
    if (tids && n > CPPROF__MAX_THREADS)
        n = CPPROF__MAX_THREADS;
    dump->threads = tids ? cpprof__calloc(n, sizeof *dump->threads) : NULL;
    for (i = 0; dump->threads && i < n; i++)
        dump->threads[i].tid = tids[i];
    dump->n = n;
    cpprof__free(tids);
    if (!dump->creations || !dump->threads ||
        !cpprof__dump_make_slots(CPPROF__DUMP_ALL, (uint32_t)n))
        return cpprof__fail_nomem(error);
    return CPPROF_OK;
}

struct others {
    struct cpprof__dump *dump;
    bool details;
};

static void
see_others(void *arg)
{
    const struct others *others = arg;

    look_at_all(others->dump, others->details);
    wait_for_answers(others->dump);
}

static void
see_all(struct cpprof__dump *dump, const struct cpprof__dump_wanted *wanted)
{
    struct others others = {dump, wanted->details};
    size_t i;

    store_relaxed(&cpprof__dump_depth[CPPROF__DUMP_ALL], wanted->depth);
    for (i = 0; i < dump->n; i++)
        if (dump->threads[i].tid == dump->caller)
            see_self(&dump->threads[i], wanted);
    if (!cpprof__blocked_threads_want_table() ||
        !cpprof__own_thread_run_new(see_others, &others, CPPROF__OWN_TABLE))
        see_others(&others);
    finish(dump);
}

enum cpprof_status
cpprof__dump_take_all(const struct cpprof__dump_wanted *wanted,
                      struct cpprof__dump *dump, struct cpprof_error *error)
{
    enum cpprof_status status;
    int cancel;

    memset(dump, 0, sizeof *dump);
    dump->caller = (int32_t)syscall(SYS_gettid);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    cpprof__own_lock_take(&lock);
    status = cpprof__dump_start(error);
    if (status == CPPROF_OK)
        status = list(dump, error);
    if (status == CPPROF_OK)
        see_all(dump, wanted);
    cpprof__own_lock_give(&lock);
    pthread_setcancelstate(cancel, &cancel);
    if (status != CPPROF_OK)
        cpprof__dump_free(dump);
    return status;
}

void
cpprof__dump_free(struct cpprof__dump *dump)
{
    cpprof__free(dump->threads);
    cpprof__free(dump->creations);
    memset(dump, 0, sizeof *dump);
}
