/* SPDX-License-Identifier: MIT */
/*
 * The thread that holds the program's table of descriptors (keeper.h).
 *
 * Threads that are to have a table of their own are counted in `n_counted`,
 * before they are made and until they have ended. Who is counted while there is
 * no keeper makes one. When nobody is counted any more the keeper ends; if the
 * program's threads are gone by then it waits for the others of ours first, so
 * that it is the last thread, on which libc runs the exit handlers. A thread
 * that does not end is not waited for without a bound: the keeper calls exit()
 * then.
 *
 * Invariants, under `lock`:
 *
 *   - `has_keeper` means that a keeper runs, or is about to be started again
 *     after a pause, and has not decided to end. It is set when a keeper has
 *     been made, by who made it, or by the keeper itself, whichever is first;
 *   - a keeper decides to end only while nobody is counted, and clears
 *     `has_keeper` in the same step. So who is counted and then sees it set has
 *     a keeper;
 *   - the lock is not held while a thread is made. Two threads that are counted
 *     at the same time may so make two keepers: both wait for the same count.
 *     Who could make none looks whether another could, and takes its own count
 *     back if not.
 */
#include "collect/runtime/keeper.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "arch/place.h"
#include "collect/runtime/own_list.h"
#include "collect/runtime/own_lock.h"
#include "collect/runtime/own_threads.h"

#include <limits.h>
#include <stdlib.h>

/* Tunables. So long the keeper waits at the end for the others, at most, and
 * for those that a library of ours has made and nobody can end: the resolver of
 * libcurl, which waits for a name server. It looks so often. */
#define OTHERS_NS      10000000000u
#define FOREIGN_NS     1000000000u
#define OTHERS_LOOK_NS 100000

/* Guards the next three. */
static struct cpprof__own_lock lock CPPROF__AT_START;
static uint32_t n_counted CPPROF__AT_START;
static bool has_keeper CPPROF__AT_START;
static void (*task)(void) CPPROF__AT_START; /* to be run by a keeper, or NULL */

static uint32_t wake; /* futex */
/* One that was counted saw that the program's are gone. */
static bool are_alone CPPROF__AT_START;

/* ---- the thread -------------------------------------------------------- */

/* False: one is there still. */
static bool
outlive_others(void)
{
    uint64_t begin = cpprof__now_ns(CLOCK_MONOTONIC), waited = 0;

    while (cpprof__own_list_has_others(0)) {
        if (waited > OTHERS_NS ||
            (waited > FOREIGN_NS && !cpprof__own_list_has_others_of_ours()))
            return false;
        cpprof__sleep_ns(OTHERS_LOOK_NS);
        waited = cpprof__now_ns(CLOCK_MONOTONIC) - begin;
    }
    return true;
}

/* False: to end. Nobody has a task for it after that. */
static bool
has_to_stay(void (**what)(void))
{
    bool stays;

    cpprof__own_lock_take(&lock);
    *what = task;
    task = NULL;
    stays = has_keeper = n_counted > 0 || *what;
    cpprof__own_lock_give(&lock);
    return stays;
}

static bool
keep(void *arg)
{
    void (*what)(void);

    (void)arg;
    for (;;) {
        uint32_t seen = load_acquire(&wake);

        if (cpprof__own_threads_pause_now())
            return true;
        if (!has_to_stay(&what))
            break;
        if (what)
            what();
        else
            syscall(SYS_futex, &wake, FUTEX_WAIT, seen, NULL, NULL, 0);
    }
    if (load_acquire(&are_alone) && !outlive_others()) {
        /* What libc does in the last thread. */
        cpprof__own_thread_end();
        exit(0);
    }
    return false;
}

static void
wake_up(void)
{
    add_relaxed(&wake, 1u);
    syscall(SYS_futex, &wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- who is counted ---------------------------------------------------- */

/* True: there is a keeper already. */
static bool
count(void)
{
    bool has;

    cpprof__own_lock_take(&lock);
    n_counted++;
    has = has_keeper;
    cpprof__own_lock_give(&lock);
    return has;
}

bool
cpprof__keeper_enter(void)
{
    const struct cpprof__own_thread keeper = {
        .name = "cpprof-keeper", .run = keep, .wake = &wake};
    bool has = count(), is_made;

    if (has)
        return true;
    is_made = !cpprof__own_thread_start_detached(&keeper);
    cpprof__own_lock_take(&lock);
    has = has_keeper |= is_made;
    n_counted -= !has;
    cpprof__own_lock_give(&lock);
    return has;
}

void
cpprof__keeper_leave(bool is_alone)
{
    if (is_alone)
        store_release(&are_alone, true);
    cpprof__own_lock_take(&lock);
    n_counted--;
    cpprof__own_lock_give(&lock);
    wake_up();
}

bool
cpprof__keeper_is_there(void)
{
    bool has;

    cpprof__own_lock_take(&lock);
    has = has_keeper;
    cpprof__own_lock_give(&lock);
    return has;
}

bool
cpprof__keeper_run(void (*f)(void))
{
    bool has;

    /* A handler interrupted it, or it has ended for a while, which may be until
     * that handler returns. */
    if (cpprof__own_lock_is_mine(&lock) || cpprof__own_threads_pause_now())
        return false;
    cpprof__own_lock_take(&lock);
    has = has_keeper;
    if (has)
        task = f;
    cpprof__own_lock_give(&lock);
    if (has)
        wake_up();
    return has;
}

/* ---- the process ------------------------------------------------------- */

bool
cpprof__keeper_is(const struct cpprof__own_thread *t)
{
    return t->run == keep;
}

void
cpprof__keeper_is_gone(void)
{
    cpprof__own_lock_take(&lock);
    has_keeper = false;
    cpprof__own_lock_give(&lock);
}

CPPROF__FIRST_STEP void
cpprof__keeper_in_child(void)
{
    n_counted = 0;
    has_keeper = false;
    task = NULL;
    are_alone = false;
    cpprof__own_lock_in_child(&lock);
}
