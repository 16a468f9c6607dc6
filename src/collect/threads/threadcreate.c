/* SPDX-License-Identifier: MIT */
/*
 * A place is announced (tid -1), live, or ended; it keeps its tid when it has
 * ended, because the kernel still lists the thread for a moment, and is used
 * again after all that ended before it.
 */
#include "collect/threads/threadcreate.h"

#include "arch/atomic.h"
#include "base/status.h"
#include "collect/encode/rows_profile.h"
#include "collect/registry/registry.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/own_lock.h"
#include "collect/signal/heap/heap_stack.h"
#include "collect/store/tables.h"
#include "collect/threads/tasks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ANNOUNCED  (-1)
#define PER_CHUNK  1024u
#define CHUNKS_MAX (CPPROF__MAX_THREADS / PER_CHUNK)
#define KEEP_ENDED 64u /* places that ended are used again after so many */

struct cpprof__born {
    int32_t tid;
    uint32_t stack;
    uintptr_t start;
    const struct cpprof__thread_self *self; /* once it has started */
    bool has_ended;
    struct cpprof__born *next; /* that ended later */
};

static struct cpprof__own_lock lock;
static bool taken_for_fork;

/* Guarded by lock. */
static struct cpprof__born *chunks[CHUNKS_MAX];
static uint32_t n_places;
static struct cpprof__born *first_ended, *last_ended;
static uint32_t n_ended;
static uint32_t n_changes;

static __thread struct cpprof__born *own;

/* ---- places ----------------------------------------------------------- */

static struct cpprof__born *
place_at(uint32_t i)
{
    return &chunks[i / PER_CHUNK][i % PER_CHUNK];
}

static struct cpprof__born *
new_place(void)
{
    void *chunk;
    CPPROF__EXEMPT;

    if (n_places == PER_CHUNK * CHUNKS_MAX)
        return NULL;
    if (n_places % PER_CHUNK == 0) {
        chunk =
            mmap(NULL, PER_CHUNK * sizeof(struct cpprof__born),
                 PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (chunk == MAP_FAILED)
            return NULL;
        chunks[n_places / PER_CHUNK] = chunk;
    }
    return place_at(n_places++);
}

static struct cpprof__born *
ended_place(void)
{
    struct cpprof__born *born = first_ended;

    if (born) {
        first_ended = born->next;
        n_ended--;
    }
    return born;
}

static struct cpprof__born *
take_place(void)
{
    struct cpprof__born *born =
        n_ended > KEEP_ENDED ? ended_place() : new_place();

    return born ? born : ended_place();
}

static void
give_place(struct cpprof__born *born)
{
    born->has_ended = true;
    born->next = NULL;
    if (first_ended)
        last_ended->next = born;
    else
        first_ended = born;
    last_ended = born;
    n_ended++;
}

/* ---- who creates ------------------------------------------------------ */

CPPROF__HOOK static uint32_t
creation_stack(void)
{
    CPPROF__EXEMPT;
    uint32_t stack = 0;

    if (cpprof__tables_make(NULL) == CPPROF_OK)
        stack = cpprof__heap_walk(&cpprof__tables.tree, true);
    return stack;
}

CPPROF__HOOK struct cpprof__born *
cpprof__born_announce(uintptr_t start)
{
    uint32_t stack = creation_stack();
    struct cpprof__born *born;

    cpprof__own_lock_take(&lock);
    born = take_place();
    if (born)
        *born = (struct cpprof__born){
            .tid = ANNOUNCED, .stack = stack, .start = start};
    cpprof__own_lock_give(&lock);
    return born;
}

void
cpprof__born_cancel(struct cpprof__born *born)
{
    if (!born)
        return;
    cpprof__own_lock_take(&lock);
    born->tid = 0;
    give_place(born);
    cpprof__own_lock_give(&lock);
}

void
cpprof__born_started(struct cpprof__born *born)
{
    own = born;
    if (!born)
        return;
    cpprof__own_lock_take(&lock);
    born->tid = (int32_t)syscall(SYS_gettid);
    born->self = &cpprof__self;
    cpprof__self.tid = born->tid;
    n_changes++;
    cpprof__own_lock_give(&lock);
}

void
cpprof__born_ended(void)
{
    store_relaxed(&cpprof__self.tid, 0);
    if (!own)
        return;
    cpprof__own_lock_take(&lock);
    give_place(own);
    n_changes++;
    cpprof__own_lock_give(&lock);
    own = NULL;
}

uint32_t
cpprof__born_changes(void)
{
    return load_relaxed(&n_changes);
}

/* ---- fork ------------------------------------------------------------- */

void
cpprof__born_fork_prepare(void)
{
    taken_for_fork = cpprof__own_lock_take_for_fork(&lock);
}

void
cpprof__born_fork_parent(void)
{
    if (taken_for_fork)
        cpprof__own_lock_give(&lock);
}

/* The thread that forked goes on as the child's first, with another tid. */
void
cpprof__born_fork_child(void)
{
    uint32_t i;

    for (i = 0; i < n_places; i++) {
        struct cpprof__born *born = place_at(i);

        if (born != own && !born->has_ended)
            give_place(born);
        born->tid = 0;
    }
    if (own)
        own->tid = (int32_t)syscall(SYS_gettid);
    if (taken_for_fork)
        cpprof__own_lock_give(&lock);
}

/* ---- reading ---------------------------------------------------------- */

static int
by_tid(const void *a, const void *b)
{
    const struct cpprof__creation *x = a, *y = b;

    return (x->tid > y->tid) - (x->tid < y->tid);
}

static int
live_first(const void *a, const void *b)
{
    const struct cpprof__creation *x = a, *y = b;
    int order = by_tid(a, b);

    return order ? order : x->has_ended - y->has_ended;
}

/* Of two with a tid, one that lives. */
static size_t
drop_doubles(struct cpprof__creation *creations, size_t n)
{
    size_t i, kept = 0;

    for (i = 0; i < n; i++)
        if (!kept || creations[kept - 1].tid != creations[i].tid)
            creations[kept++] = creations[i];
    return kept;
}

static size_t
copy_places(struct cpprof__creation *to, size_t max)
{
    size_t n = 0;
    uint32_t i;

    for (i = 0; i < n_places && n < max; i++) {
        const struct cpprof__born *born = place_at(i);

        if (born->tid > 0)
            to[n++] =
                (struct cpprof__creation){born->tid, born->stack, born->start,
                                          born->self, born->has_ended};
    }
    return n;
}

struct cpprof__creation *
cpprof__creations(size_t *n)
{
    size_t max = load_acquire(&n_places) + PER_CHUNK;
    struct cpprof__creation *creations = calloc(max, sizeof *creations);

    *n = 0;
    if (!creations)
        return NULL;
    cpprof__own_lock_take(&lock);
    *n = copy_places(creations, max);
    cpprof__own_lock_give(&lock);
    qsort(creations, *n, sizeof *creations, live_first);
    *n = drop_doubles(creations, *n);
    return creations;
}

const struct cpprof__creation *
cpprof__creation_of(const struct cpprof__creation *creations, size_t n,
                    int32_t tid)
{
    const struct cpprof__creation key = {.tid = tid};

    return creations ? bsearch(&key, creations, n, sizeof key, by_tid) : NULL;
}

int32_t *
cpprof__live_threads(const struct cpprof__creation *creations,
                     size_t n_creations, size_t *n)
{
    int32_t *extra = calloc(n_creations + 1, sizeof *extra), *tids;
    size_t i;

    for (i = 0; extra && i < n_creations; i++)
        extra[i] = creations[i].tid;
    tids = extra ? cpprof__tasks(extra, n_creations, n) : NULL;
    free(extra);
    return tids;
}

/* ---- the profile ------------------------------------------------------ */

static uint32_t
own_frame(uintptr_t frame)
{
    return cpprof__tree_add(&cpprof__tables.tree, &frame, 1);
}

static uint32_t
stack_of(int32_t tid, const struct cpprof__creation *creation)
{
    if (creation && creation->stack)
        return creation->stack;
    return own_frame(tid == (int32_t)getpid() ? CPPROF__FRAME_MAIN
                                              : CPPROF__FRAME_ORPHAN);
}

static const struct cpprof__value_type types[] = {{"threadcreate", "count"}};
static const struct cpprof__rows_form form = {
    .name = "threadcreate",
    .types = types,
    .n_types = 1,
    .period_type = {"threadcreate", "count"},
    .period = 1,
};

static enum cpprof_status
read_rows(struct cpprof__row **out, size_t *n_rows, struct cpprof_error *error)
{
    size_t n_creations, n = 0, i;
    struct cpprof__creation *creations = cpprof__creations(&n_creations);
    int32_t *tids = cpprof__live_threads(NULL, 0, &n);
    struct cpprof__row *rows = calloc(n + 1, sizeof *rows);
    bool ok = creations && tids && rows;

    for (i = 0; ok && i < n; i++)
        rows[i] = (struct cpprof__row){
            .values = {1},
            .stack = stack_of(
                tids[i], cpprof__creation_of(creations, n_creations, tids[i]))};
    free(creations);
    free(tids);
    if (!ok) {
        free(rows);
        return cpprof__fail_nomem(error);
    }
    *out = rows;
    *n_rows = n;
    return CPPROF_OK;
}

/* A row for each thread that lives; from malloc. */
static enum cpprof_status
take_rows(const struct cpprof_profile_options *options, uintptr_t above,
          struct cpprof__row **rows, size_t *n, struct cpprof_error *error)
{
    enum cpprof_status status = cpprof__tables_make(error);

    return status == CPPROF_OK ? read_rows(rows, n, error) : status;
}

static enum cpprof_status
write_profile(struct cpprof_writer writer,
              const struct cpprof_profile_options *options,
              struct cpprof_error *error)
{
    struct cpprof__row *rows = NULL;
    size_t n = 0;
    enum cpprof_status status = take_rows(options, 0, &rows, &n, error);

    if (status == CPPROF_OK)
        status = cpprof__rows_write(&form, rows, n, options, writer, error);
    else if (writer.close)
        writer.close(writer.ctx, 1);
    free(rows);
    return status;
}

static size_t
count(void)
{
    size_t n = 0;

    free(cpprof__live_threads(NULL, 0, &n));
    return n;
}

static enum cpprof_status
add_records(struct cpprof__records *records, struct cpprof_error *error)
{
    struct cpprof__row *rows = NULL;
    size_t i, n = 0;
    enum cpprof_status status = take_rows(NULL, 0, &rows, &n, error);

    for (i = 0; i < n; i++)
        cpprof__records_add_stack(records, NULL, rows[i].stack);
    free(rows);
    return status;
}

const struct cpprof__builtin cpprof__builtin_threadcreate = {
    .name = "threadcreate",
    .count = count,
    .write = write_profile,
    .records = add_records,
    .form = &form,
    .rows = take_rows,
};
