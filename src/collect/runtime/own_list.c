/* SPDX-License-Identifier: MIT */
/*
 * Which threads are ours.
 *
 * Each has an entry in `owns` from its first statement on, and keeps it for a
 * moment after its end, because the kernel lists it for as long.
 *
 * Invariants: entries are taken by compare-and-swap and read by everybody
 * without a lock, in hooks too; those that were ever taken are the first
 * `n_used`; a thread that is being made and has no entry yet is counted in
 * `n_making`, so nobody takes it for the program's who waits for that to be 0.
 */
#include "collect/runtime/own_list.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "arch/place.h"
#include "collect/runtime/proc.h"

#include <stdlib.h>
#include <string.h>

/* Drainer, ticker, background thread, who writes, threads of servers: more than
 * these are taken for the program's. */
#define OWN_MAX 256

/* A thread that said that it ends is still there for a moment. */
#define LINGER_NS 1000000000u

/* Tunables. Who waits for threads that are made looks so often, and so long:
 * one that gets no processor for a second is shown rather than waited for. */
#define SETTLE_PAUSE_NS 50000
#define SETTLE_LOOKS    20000u

/* In the place of a tid: the entry is being filled. As long as it has the time
 * of an earlier end it would look free to the next one. */
#define TAKEN (-1)

struct own {
    int32_t tid;       /* 0: free */
    uint64_t ended_ns; /* 0: it runs */
    int32_t gone;      /* the tid, once the kernel has forgotten it: who found
                        * that out may say so when another has the entry */
    bool pauses;       /* when it is asked to; one that others made does not */
    uint32_t *wake;    /* futex, which may be gone: only the kernel looks */
};
static struct own owns[OWN_MAX] CPPROF__LARGE;
/* CPU time of those that have ended. */
static uint64_t ended_cpu_ns CPPROF__AT_START;
/* That have not said yet that they began. */
static uint32_t n_making CPPROF__AT_START;
/* Entries from the first that may be taken. */
static uint32_t n_used CPPROF__AT_START;

/* ---- an entry ---------------------------------------------------------- */

static int32_t
own_tid(void)
{
    return (int32_t)syscall(SYS_gettid);
}

static bool
is_over(const struct own *own)
{
    uint64_t ended = load_acquire(&own->ended_ns);

    return ended && cpprof__now_ns(CLOCK_MONOTONIC) - ended > LINGER_NS;
}

static bool
runs(const struct own *own)
{
    return load_acquire(&own->tid) && !load_acquire(&own->ended_ns);
}

/* It has left what it did, but libc finds it until the kernel does not. Of one
 * that has ended this is asked until the answer is no: a program may have us
 * pause a thousand times a second. */
static bool
is_there(struct own *own)
{
    int32_t tid = load_acquire(&own->tid);

    if (!tid || is_over(own) || load_acquire(&own->gone) == tid)
        return false;
    if (!syscall(SYS_tgkill, getpid(), tid, 0))
        return true;
    if (load_acquire(&own->ended_ns))
        store_release(&own->gone, tid);
    return false;
}

/* ---- what threads say -------------------------------------------------- */

CPPROF__FIRST_STEP void
cpprof__own_list_expect(void)
{
    add_relaxed(&n_making, 1u);
}

CPPROF__FIRST_STEP void
cpprof__own_list_expect_no_more(void)
{
    uint32_t n = load_relaxed(&n_making);

    while (n && !cas_acq_rel(&n_making, &n, n - 1))
        continue;
}

static void
note_used(uint32_t n)
{
    uint32_t used = load_relaxed(&n_used);

    while (used < n && !cas_acq_rel(&n_used, &used, n))
        continue;
}

/* An entry that is free, or whose thread has ended; in haste also that of one
 * which the kernel has only just forgotten. NULL: there is none. */
CPPROF__FIRST_STEP static struct own *
take(bool in_haste)
{
    unsigned i;

    for (i = 0; i < OWN_MAX; i++) {
        /* A new one is not read: its page would come by two faults. */
        int32_t found =
            i < load_acquire(&n_used) ? load_acquire(&owns[i].tid) : 0;

        if (found == TAKEN)
            continue;
        if (found && !is_over(&owns[i]) &&
            !(in_haste && !runs(&owns[i]) && !is_there(&owns[i])))
            continue;
        note_used(i + 1); /* before: a child clears what is in use */
        if (cas_acq_rel(&owns[i].tid, &found, (int32_t)TAKEN))
            return &owns[i];
    }
    return NULL;
}

/* A program may have ours end and begin again a thousand times a second. */
CPPROF__FIRST_STEP void
cpprof__own_list_begin(bool pauses, uint32_t *wake)
{
    struct own *own = take(false);

    if (!own)
        own = take(true);
    if (!own)
        return;
    store_release(&own->wake, wake);
    store_release(&own->pauses, pauses);
    store_release(&own->gone, 0);
    store_release(&own->ended_ns, (uint64_t)0);
    store_release(&own->tid, own_tid());
}

void
cpprof__own_list_end(void)
{
    int32_t tid = own_tid();
    unsigned i;

    for (i = 0; i < load_acquire(&n_used); i++)
        if (load_acquire(&owns[i].tid) == tid &&
            !load_acquire(&owns[i].ended_ns)) {
            add_relaxed(&ended_cpu_ns, cpprof__now_ns(CLOCK_THREAD_CPUTIME_ID));
            store_release(&owns[i].ended_ns, cpprof__now_ns(CLOCK_MONOTONIC));
        }
}

CPPROF__FIRST_STEP void
cpprof__own_list_in_child(void)
{
    while (n_used) {
        store_relaxed(&owns[--n_used].tid, 0);
        store_relaxed(&owns[n_used].ended_ns, (uint64_t)0);
    }
    n_making = 0;
    ended_cpu_ns = 0;
}

uint64_t
cpprof__own_list_cpu_ns(void)
{
    uint64_t ns = load_relaxed(&ended_cpu_ns);
    unsigned i;

    for (i = 0; i < load_acquire(&n_used); i++)
        if (runs(&owns[i]))
            ns += cpprof__clock_ns(
                CPPROF__THREAD_CPU_CLOCK(load_acquire(&owns[i].tid)));
    return ns;
}

/* ---- what is asked ----------------------------------------------------- */

bool
cpprof__is_own_thread(int32_t tid)
{
    unsigned i;

    for (i = 0; i < load_acquire(&n_used); i++)
        if (load_acquire(&owns[i].tid) == tid && !is_over(&owns[i]))
            return true;
    return false;
}

bool
cpprof__own_thread_runs(int32_t tid)
{
    unsigned i;

    for (i = 0; i < load_acquire(&n_used); i++)
        if (load_acquire(&owns[i].tid) == tid && runs(&owns[i]))
            return true;
    return false;
}

CPPROF__FIRST_STEP uint32_t
cpprof__own_threads(void)
{
    uint32_t n = 0;
    unsigned i;

    for (i = 0; i < load_acquire(&n_used); i++)
        n += runs(&owns[i]);
    return n;
}

bool
cpprof__own_list_is_empty(void)
{
    unsigned i;

    if (load_acquire(&n_making)) /* before: one may just get its entry */
        return false;
    for (i = 0; i < load_acquire(&n_used); i++)
        if (runs(&owns[i]) || is_there(&owns[i]))
            return false;
    return true;
}

bool
cpprof__own_list_was_empty(void)
{
    unsigned i;

    if (load_acquire(&n_making))
        return false;
    for (i = 0; i < load_acquire(&n_used); i++)
        if (load_acquire(&owns[i].tid) && !is_over(&owns[i]))
            return false;
    return true;
}

void
cpprof__own_threads_wait_named(void)
{
    unsigned i;

    for (i = 0; load_acquire(&n_making) && i < SETTLE_LOOKS; i++)
        cpprof__sleep_ns(SETTLE_PAUSE_NS);
}

bool
cpprof__own_list_is_all(void)
{
    struct cpprof__folder tasks;
    bool all = cpprof__proc_threads(&tasks);
    const char *name;

    if (!all)
        return false;
    while (all && (name = cpprof__folder_next(&tasks))) {
        int32_t tid = (int32_t)atoi(name);

        all = !tid || tid == (int32_t)getpid() || cpprof__is_own_thread(tid);
        if (!all) { /* or it is being made */
            cpprof__own_threads_wait_named();
            all = cpprof__is_own_thread(tid);
        }
    }
    cpprof__folder_close(&tasks);
    return all;
}

bool
cpprof__own_list_has_others(int32_t besides)
{
    int32_t tid = own_tid(), other;
    bool found = false;
    unsigned i;

    for (i = 0; i < load_acquire(&n_used); i++) {
        other = load_acquire(&owns[i].tid);
        found |= other != tid && other != besides && is_there(&owns[i]);
    }
    return found;
}

bool
cpprof__own_list_has_others_of_ours(void)
{
    int32_t tid = own_tid();
    bool found = false;
    unsigned i;

    for (i = 0; i < load_acquire(&n_used); i++)
        found |= load_acquire(&owns[i].tid) != tid &&
                 load_acquire(&owns[i].pauses) && is_there(&owns[i]);
    return found;
}

uint32_t
cpprof__own_list_wake(void)
{
    uint32_t n = load_acquire(&n_making);
    unsigned i;

    for (i = 0; i < load_acquire(&n_used); i++) {
        uint32_t *wake = load_acquire(&owns[i].wake);

        if (!load_acquire(&owns[i].pauses))
            continue;
        n += runs(&owns[i]) || is_there(&owns[i]);
        if (wake && runs(&owns[i]))
            cpprof__futex_wake(wake);
    }
    return n;
}
