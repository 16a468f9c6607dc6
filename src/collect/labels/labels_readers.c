/* SPDX-License-Identifier: MIT */
/*
 * When a label set may be freed; labels.h has the protocol.
 *
 * A set whose last reference is dropped is freed at once if there is no
 * reader. Otherwise it goes to the end of the limbo list with the value of the
 * clock. A reader that has passed a clock value cannot have sets that were
 * freed before it, so whenever a reader moves on, the front of the list up to
 * the slowest reader is freed.
 *
 * Invariants: the list is sorted by freed_at; `lock` guards everything but
 * n_readers, which is also read without it.
 */
#include "arch/place.h"
#include "collect/labels/labels.h"
#include "own/memory.h"

#include "collect/runtime/own_lock.h"

#include <stdlib.h>

static struct cpprof__own_lock lock CPPROF__AT_START;

/* Guarded by lock; n_readers is read without it. */
static struct cpprof__labels_reader *readers CPPROF__AT_START;
static uint32_t n_readers CPPROF__AT_START;
static uint64_t clock_now;
static struct cpprof_labels *first; /* in limbo, by .freed_at */
static struct cpprof_labels *last;
static size_t n_limbo;

/* Take the sets that no reader may have out of limbo. Returns a list to be
 * freed. */
static struct cpprof_labels *
take_done(void)
{
    const struct cpprof__labels_reader *reader;
    struct cpprof_labels *done = first, *end = NULL;
    uint64_t oldest = UINT64_MAX;

    for (reader = readers; reader; reader = reader->next)
        oldest = reader->since < oldest ? reader->since : oldest;
    while (first && first->freed_at <= oldest) {
        end = first;
        first = first->next;
        n_limbo--;
    }
    if (!first)
        last = NULL;
    if (!end)
        return NULL;
    end->next = NULL;
    return done;
}

static void
free_all(struct cpprof_labels *set)
{
    while (set) {
        struct cpprof_labels *next = set->next;

        cpprof__free(set);
        set = next;
    }
}

static struct cpprof_labels *
put_in_limbo(struct cpprof_labels *set)
{
    set->freed_at = ++clock_now;
    set->next = NULL;
    if (last)
        last->next = set;
    else
        first = set;
    last = set;
    n_limbo++;
    return take_done();
}

/* A reader that begins from here on cannot meet the set: it is no thread's
 * current one. */
void
cpprof__labels_release(struct cpprof_labels *set)
{
    if (__atomic_load_n(&n_readers, __ATOMIC_SEQ_CST)) {
        cpprof__own_lock_take(&lock);
        set = put_in_limbo(set);
        cpprof__own_lock_give(&lock);
        free_all(set);
    } else {
        cpprof__free(set);
    }
}

void
cpprof__labels_reader_begin(struct cpprof__labels_reader *reader)
{
    cpprof__own_lock_take(&lock);
    reader->since = clock_now;
    reader->next = readers;
    readers = reader;
    __atomic_fetch_add(&n_readers, 1, __ATOMIC_SEQ_CST);
    cpprof__own_lock_give(&lock);
}

void
cpprof__labels_reader_end(struct cpprof__labels_reader *reader)
{
    struct cpprof__labels_reader **at = &readers;
    struct cpprof_labels *done = NULL;

    cpprof__own_lock_take(&lock);
    while (*at && *at != reader)
        at = &(*at)->next;
    if (*at) { /* not in a child, which forgot them */
        *at = reader->next;
        __atomic_fetch_sub(&n_readers, 1, __ATOMIC_SEQ_CST);
        done = take_done();
    }
    cpprof__own_lock_give(&lock);
    free_all(done);
}

uint64_t
cpprof__labels_clock(void)
{
    uint64_t now;

    cpprof__own_lock_take(&lock);
    now = clock_now;
    cpprof__own_lock_give(&lock);
    return now;
}

void
cpprof__labels_reader_passed(struct cpprof__labels_reader *reader,
                             uint64_t clock)
{
    struct cpprof_labels *done;

    cpprof__own_lock_take(&lock);
    reader->since = clock;
    done = take_done();
    cpprof__own_lock_give(&lock);
    free_all(done);
}

size_t
cpprof__labels_in_limbo(void)
{
    size_t n;

    cpprof__own_lock_take(&lock);
    n = n_limbo;
    cpprof__own_lock_give(&lock);
    return n;
}

/* The child has none of the parent's readers. What is in limbo is freed when a
 * reader of its own ends, because the allocator may not be ready yet; or never,
 * when another thread was changing the list. */
CPPROF__FIRST_STEP void
cpprof__labels_in_child(void)
{
    if (cpprof__own_lock_in_child(&lock)) {
        first = last = NULL;
        n_limbo = 0;
    }
    readers = NULL;
    store_relaxed(&n_readers, 0);
}
