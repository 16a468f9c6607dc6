/* SPDX-License-Identifier: MIT */
/*
 * A slot is announced (tid -1), live, or ended; it keeps its tid when it has
 * ended, because the kernel still lists the thread for a moment, and is used
 * again after all that ended before it.
 */
#include "collect/threads/thread_creation.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "arch/place.h"
#include "base/status.h"
#include "collect/encode/records_profile.h"
#include "collect/registry/registry.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/own_lock.h"
#include "collect/signal/heap/hook_stack.h"
#include "collect/store/tables.h"
#include "collect/threads/tasks.h"
#include "own/memory.h"
#include "own/sort.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ANNOUNCED  (-1)
#define PER_CHUNK  1024u
#define CHUNKS_MAX (CPPROF__MAX_THREADS / PER_CHUNK)
#define KEEP_ENDED 64u /* an ended slot is used again after so many others */

struct cpprof__thread_creation {
    int32_t tid;
    uint32_t stack;
    uintptr_t start;
    const struct cpprof__thread_self *self; /* once it has started */
    uint64_t started_ns;
    bool has_ended;
    struct cpprof__thread_creation *next; /* that ended later */
};

static struct cpprof__own_lock lock CPPROF__AT_START;

/* Guarded by lock. */
static struct cpprof__thread_creation *chunks[CHUNKS_MAX] CPPROF__LARGE;
static uint32_t n_slots;
static struct cpprof__thread_creation *first_ended, *last_ended;
static uint32_t n_ended;
static uint32_t n_changes;

static __thread struct cpprof__thread_creation *own;

/* ---- slots ------------------------------------------------------------ */

static struct cpprof__thread_creation *
slot_at(uint32_t i)
{
    return &chunks[i / PER_CHUNK][i % PER_CHUNK];
}

static struct cpprof__thread_creation *
new_slot(void)
{
    void *chunk;

    if (n_slots == PER_CHUNK * CHUNKS_MAX)
        return NULL;
    if (n_slots % PER_CHUNK == 0) {
        chunk =
            cpprof__calloc(PER_CHUNK, sizeof(struct cpprof__thread_creation));
        if (!chunk)
            return NULL;
        chunks[n_slots / PER_CHUNK] = chunk;
    }
    return slot_at(n_slots++);
}

static struct cpprof__thread_creation *
ended_slot(void)
{
    struct cpprof__thread_creation *creation = first_ended;

    if (creation) {
        first_ended = creation->next;
        n_ended--;
    }
    return creation;
}

static struct cpprof__thread_creation *
take_slot(void)
{
    struct cpprof__thread_creation *creation =
        n_ended > KEEP_ENDED ? ended_slot() : new_slot();

    return creation ? creation : ended_slot();
}

static void
give_slot(struct cpprof__thread_creation *creation)
{
    creation->has_ended = true;
    creation->next = NULL;
    if (first_ended)
        last_ended->next = creation;
    else
        first_ended = creation;
    last_ended = creation;
    n_ended++;
}

/* ---- who creates ------------------------------------------------------ */

CPPROF__HOOK static uint32_t
creation_stack(void)
{
    CPPROF__EXEMPT;
    uint32_t stack = 0;

    if (cpprof__tables_make(NULL) == CPPROF_OK)
        stack = cpprof__hook_walk(&cpprof__tables.tree, true);
    cpprof__tree_hold(stack); /* for good: there are few of them */
    return stack;
}

CPPROF__HOOK struct cpprof__thread_creation *
cpprof__thread_creation_announce(uintptr_t start)
{
    uint32_t stack = creation_stack();
    struct cpprof__thread_creation *creation;

    cpprof__own_lock_take(&lock);
    creation = take_slot();
    if (creation)
        *creation = (struct cpprof__thread_creation){
            .tid = ANNOUNCED, .stack = stack, .start = start};
    cpprof__own_lock_give(&lock);
    return creation;
}

void
cpprof__thread_creation_cancel(struct cpprof__thread_creation *creation)
{
    if (!creation)
        return;
    cpprof__own_lock_take(&lock);
    creation->tid = 0;
    give_slot(creation);
    cpprof__own_lock_give(&lock);
}

void
cpprof__thread_creation_started(struct cpprof__thread_creation *creation)
{
    own = creation;
    if (!creation)
        return;
    creation->started_ns = cpprof__clock_ns(CLOCK_MONOTONIC);
    cpprof__own_lock_take(&lock);
    creation->tid = (int32_t)syscall(SYS_gettid);
    creation->self = &cpprof__self;
    cpprof__self.tid = creation->tid;
    n_changes++;
    cpprof__own_lock_give(&lock);
}

void
cpprof__thread_creation_ended(void)
{
    store_relaxed(&cpprof__self.tid, 0);
    if (!own)
        return;
    cpprof__own_lock_take(&lock);
    give_slot(own);
    n_changes++;
    cpprof__own_lock_give(&lock);
    own = NULL;
}

uint32_t
cpprof__thread_creation_changes(void)
{
    return load_relaxed(&n_changes);
}

/* ---- fork ------------------------------------------------------------- */

/* Another thread was in the midst of a change: what is known is left as it is,
 * and from here on the child knows its own. */
static void
start_anew(void)
{
    memset(chunks, 0, sizeof chunks);
    n_slots = n_ended = 0;
    first_ended = last_ended = NULL;
    own = NULL;
}

/* The thread that forked goes on as the child's first, with another tid. */
CPPROF__FIRST_STEP void
cpprof__thread_creation_in_child(void)
{
    uint32_t i;

    if (cpprof__own_lock_in_child(&lock))
        start_anew();
    for (i = 0; i < n_slots; i++) {
        struct cpprof__thread_creation *creation = slot_at(i);

        if (creation != own && !creation->has_ended)
            give_slot(creation);
        creation->tid = 0;
    }
    if (own)
        own->tid = (int32_t)syscall(SYS_gettid);
}

/* ---- reading ---------------------------------------------------------- */

static int
by_tid(const void *a, const void *b)
{
    const struct cpprof__creation_info *x = a, *y = b;

    return (x->tid > y->tid) - (x->tid < y->tid);
}

static int
live_first(const void *a, const void *b)
{
    const struct cpprof__creation_info *x = a, *y = b;
    int order = by_tid(a, b);

    return order ? order : x->has_ended - y->has_ended;
}

/* Of two slots with one tid, a living one. */
static size_t
drop_doubles(struct cpprof__creation_info *creations, size_t n)
{
    size_t i, kept = 0;

    for (i = 0; i < n; i++)
        if (!kept || creations[kept - 1].tid != creations[i].tid)
            creations[kept++] = creations[i];
    return kept;
}

static size_t
copy_slots(struct cpprof__creation_info *to, size_t max)
{
    size_t n = 0;
    uint32_t i;

    for (i = 0; i < n_slots && n < max; i++) {
        const struct cpprof__thread_creation *creation = slot_at(i);

        if (creation->tid > 0)
            to[n++] = (struct cpprof__creation_info){
                creation->tid,  creation->stack,      creation->start,
                creation->self, creation->started_ns, creation->has_ended};
    }
    return n;
}

struct cpprof__creation_info *
cpprof__creations(size_t *n)
{
    size_t max = load_acquire(&n_slots) + PER_CHUNK;
    struct cpprof__creation_info *creations =
        cpprof__calloc(max, sizeof *creations);

    *n = 0;
    if (!creations)
        return NULL;
    cpprof__own_lock_take(&lock);
    *n = copy_slots(creations, max);
    cpprof__own_lock_give(&lock);
    cpprof__sort(creations, *n, sizeof *creations, live_first);
    *n = drop_doubles(creations, *n);
    return creations;
}

const struct cpprof__creation_info *
cpprof__creation_of(const struct cpprof__creation_info *creations, size_t n,
                    int32_t tid)
{
    const struct cpprof__creation_info key = {.tid = tid};

    return creations ? bsearch(&key, creations, n, sizeof key, by_tid) : NULL;
}

int32_t *
cpprof__live_threads(const struct cpprof__creation_info *creations,
                     size_t n_creations, size_t *n)
{
    int32_t *extra = cpprof__calloc(n_creations + 1, sizeof *extra), *tids;
    size_t i;

    for (i = 0; extra && i < n_creations; i++)
        extra[i] = creations[i].tid;
    tids = extra ? cpprof__tasks(extra, n_creations, n) : NULL;
    cpprof__free(extra);
    return tids;
}

/* ---- the profile ------------------------------------------------------ */

static uint32_t
own_frame(uintptr_t frame)
{
    return cpprof__tree_add(&cpprof__tables.tree, &frame, 1);
}

static uint32_t
stack_of(int32_t tid, const struct cpprof__creation_info *creation)
{
    if (creation && creation->stack)
        return creation->stack;
    return own_frame(tid == (int32_t)getpid() ? CPPROF__FRAME_MAIN
                                              : CPPROF__FRAME_ORPHAN);
}

static const struct cpprof__value_type types[] = {{"threadcreate", "count"}};
static const struct cpprof__records_form form = {
    .name = "threadcreate",
    .types = types,
    .n_types = 1,
    .period_type = {"threadcreate", "count"},
    .period = 1,
};

static enum cpprof_status
read_records(struct cpprof__stack_record **out, size_t *n_records,
             struct cpprof_error *error)
{
    size_t n_creations, n = 0, i;
    struct cpprof__creation_info *creations = cpprof__creations(&n_creations);
    int32_t *tids = cpprof__live_threads(NULL, 0, &n);
    struct cpprof__stack_record *records =
        cpprof__calloc(n + 1, sizeof *records);
    enum cpprof_status status = tids ? CPPROF_OK : cpprof__tasks_check(error);
    bool ok = creations && tids && records;

    for (i = 0; ok && i < n; i++)
        records[i] = (struct cpprof__stack_record){
            .values = {1},
            .stack = stack_of(
                tids[i], cpprof__creation_of(creations, n_creations, tids[i]))};
    cpprof__free(creations);
    cpprof__free(tids);
    if (!ok) {
        cpprof__free(records);
        return status == CPPROF_OK ? cpprof__fail_nomem(error) : status;
    }
    *out = records;
    *n_records = n;
    return CPPROF_OK;
}

/* A record for each thread that lives; from malloc. */
static enum cpprof_status
take_records(const struct cpprof__builtin *self,
             const struct cpprof_profile_options *options, uintptr_t above,
             struct cpprof__stack_record **records, size_t *n,
             struct cpprof_error *error)
{
    enum cpprof_status status = cpprof__tables_make(error);

    return status == CPPROF_OK ? read_records(records, n, error) : status;
}

static size_t
count(const struct cpprof__builtin *self)
{
    size_t n = 0;

    cpprof__free(cpprof__live_threads(NULL, 0, &n));
    return n;
}

static enum cpprof_status
add_all_records(const struct cpprof__builtin *self,
                struct cpprof__records *all_records, struct cpprof_error *error)
{
    struct cpprof__stack_record *records = NULL;
    size_t i, n = 0;
    enum cpprof_status status =
        take_records(self, NULL, 0, &records, &n, error);

    for (i = 0; i < n; i++)
        cpprof__records_add_stack(all_records, NULL, records[i].stack);
    cpprof__free(records);
    return status;
}

const struct cpprof__builtin cpprof__builtin_threadcreate = {
    .name = "threadcreate",
    .count = count,
    .all_records = add_all_records,
    .form = &form,
    .records = take_records,
};
