/* SPDX-License-Identifier: MIT */
/*
 * The free list is a range of one of two arrays. Numbers are taken from it by
 * compare-and-swap of a word that says which array, where the range begins, and
 * where it ends. Recycling writes what it frees into the other array, puts an
 * empty range in place of the old one for a moment, copies what was left of
 * that, and hands out the whole. So a number is on one list only, and a thread
 * that was about to take one finds that the word has changed.
 */
#include "collect/signal/tables/entries.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "arch/place.h"
#include "arch/regs.h"

#include <sys/syscall.h>
#include <time.h>

/* Tunable: so often a full table is looked at. */
#define PAUSE_NS 1000000000u

/* The most looks at a recycler that is being waited for: it may be a thread
 * that runs seldom. */
#define WAITS_MAX 100000u

struct cpprof__entries_state {
    uint64_t free;   /* a range */
    uint32_t n_made; /* entries taken, of all time */
    uint32_t pad;
};

#define END_BITS 31

static uint64_t
range(uint32_t list, uint32_t first, uint32_t end)
{
    return (uint64_t)list << 63 | (uint64_t)first << END_BITS | end;
}

static uint32_t
end_of(uint64_t free)
{
    return free & ((1u << END_BITS) - 1);
}

static uint32_t
first_of(uint64_t free)
{
    return end_of(free >> END_BITS);
}

static uint32_t
list_of(uint64_t free)
{
    return (uint32_t)(free >> 63);
}

/* The clock of all tables, and who recycles. */
static uint32_t round_now, is_wanted, is_recycling CPPROF__AT_START,
    n_paused CPPROF__AT_START;
static uint64_t not_before_ns;

static void (*recyclers[8])(void);

size_t
cpprof__entries_bytes(uint32_t bound)
{
    return sizeof(struct cpprof__entries_state) +
           bound * (2 * sizeof(uint32_t) + 2);
}

/* Threads may make them at the same time: cpprof__tree_make(). */
__attribute__((no_sanitize("thread"))) void
cpprof__entries_make(struct cpprof__entries *entries, uint32_t bound,
                     uint32_t *given, void *memory)
{
    entries->bound = bound;
    entries->given = given;
    entries->lists[0] =
        (void *)((char *)memory + sizeof(struct cpprof__entries_state));
    entries->lists[1] = entries->lists[0] + bound;
    entries->used = (uint8_t *)(entries->lists[1] + bound);
    entries->condemned = entries->used + bound;
    store_release(&entries->state, memory);
}

void
cpprof__entries_set_bound(struct cpprof__entries *entries, uint32_t bound)
{
    store_relaxed(&entries->bound, bound);
}

void
cpprof__entries_use(struct cpprof__entries *entries, uint32_t number)
{
    uint8_t now = (uint8_t)load_relaxed(&round_now);

    if (load_relaxed(&entries->used[number]) != now)
        store_relaxed(&entries->used[number], now);
}

bool
cpprof__entries_is_cold(const struct cpprof__entries *entries, uint32_t number)
{
    uint32_t age =
        load_relaxed(&round_now) - load_relaxed(&entries->used[number]);

    return (uint8_t)age >= 2;
}

uint32_t
cpprof__entries_left(const struct cpprof__entries *entries)
{
    uint64_t free = load_acquire(&entries->state->free);
    uint32_t given = load_relaxed(entries->given);
    uint32_t bound = load_relaxed(&entries->bound);

    return end_of(free) - first_of(free) + (given < bound ? bound - given : 0);
}

/* ---- taking ----------------------------------------------------------- */

static uint32_t
take_new(struct cpprof__entries *entries)
{
    uint32_t number, bound = load_relaxed(&entries->bound);

    /* Looked at first, so that the count stays near the bound. */
    if (load_relaxed(entries->given) >= bound)
        return 0;
    number = add_relaxed(entries->given, 1);
    return number < bound ? number : 0;
}

static uint32_t
take_free(struct cpprof__entries *entries)
{
    uint64_t free = load_acquire(&entries->state->free);

    while (first_of(free) < end_of(free)) {
        uint32_t number = entries->lists[list_of(free)][first_of(free)];

        if (cas_acq_rel(&entries->state->free, &free, free + range(0, 1, 0)))
            return number;
    }
    return 0;
}

/* A full table gives out no entries, which would make the others older. So the
 * round goes on by time. */
static void
note_full(void)
{
    uint64_t now = cpprof__now_ns(CLOCK_MONOTONIC_COARSE),
             before = load_relaxed(&not_before_ns);

    if (now < before || !cas_acq_rel(&not_before_ns, &before, now + PAUSE_NS))
        return;
    add_relaxed(&round_now, 1);
    store_release(&is_wanted, 1u);
}

uint32_t
cpprof__entries_take(struct cpprof__entries *entries)
{
    uint32_t bound = load_relaxed(&entries->bound), part = bound / 8;
    uint32_t number = take_new(entries);

    if (!number)
        number = take_free(entries);
    if (!number) {
        note_full();
        return 0;
    }
    cpprof__entries_use(entries, number);
    if (add_relaxed(&entries->state->n_made, 1) % part == part - 1) {
        add_relaxed(&round_now, 1);
        cpprof__entries_use(entries, number);
        if (cpprof__entries_left(entries) < bound / 2)
            store_release(&is_wanted, 1u);
    }
    return number;
}

/* ---- recycling -------------------------------------------------------- */

static void
publish(struct cpprof__entries *entries, uint32_t list, uint32_t n)
{
    uint64_t old = swap_acq_rel(&entries->state->free, 0);
    uint32_t i;

    for (i = first_of(old); i < end_of(old); i++)
        entries->lists[list][n++] = entries->lists[list_of(old)][i];
    store_release(&entries->state->free, range(list, 0, n));
}

void
cpprof__entries_sweep(struct cpprof__entries *entries,
                      const struct cpprof__entries_kind *kind, void *table)
{
    uint32_t list = !list_of(load_relaxed(&entries->state->free));
    uint32_t i, n = load_acquire(entries->given), n_free = 0;
    uint32_t bound = load_relaxed(&entries->bound);

    for (i = 1; i < n && i < bound; i++) {
        if (!kind->is_there(table, i))
            continue;
        if (!cpprof__entries_is_cold(entries, i) || kind->is_wanted(table, i)) {
            entries->condemned[i] = 0;
        } else if (!entries->condemned[i]) {
            entries->condemned[i] = 1;
            kind->remove(table, i);
        } else {
            entries->condemned[i] = 0;
            kind->clear(table, i);
            entries->lists[list][n_free++] = i;
        }
    }
    publish(entries, list, n_free);
}

void
cpprof__recycle_add(void (*recycle)(void))
{
    unsigned i;

    for (i = 0; i < sizeof recyclers / sizeof *recyclers; i++) {
        void (*found)(void) = NULL;

        if (cas_acq_rel(&recyclers[i], &found, recycle) || found == recycle)
            return;
    }
}

static bool
begin(void)
{
    uint32_t nobody = 0;

    if (__atomic_load_n(&n_paused, __ATOMIC_SEQ_CST) ||
        !__atomic_compare_exchange_n(&is_recycling, &nobody, 1, 0,
                                     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return false;
    if (!__atomic_load_n(&n_paused, __ATOMIC_SEQ_CST))
        return true;
    store_release(&is_recycling, 0u);
    return false;
}

static void
recycle(void)
{
    unsigned i;

    if (!begin())
        return;
    store_relaxed(&is_wanted, 0u);
    for (i = 0; i < sizeof recyclers / sizeof *recyclers; i++)
        if (load_acquire(&recyclers[i]))
            recyclers[i]();
    store_release(&is_recycling, 0u);
}

void
cpprof__recycle(void)
{
    if (load_acquire(&is_wanted))
        recycle();
}

void
cpprof__recycle_pause(void)
{
    uint32_t i;

    __atomic_fetch_add(&n_paused, 1, __ATOMIC_SEQ_CST);
    for (i = 0; i < WAITS_MAX; i++) {
        if (!__atomic_load_n(&is_recycling, __ATOMIC_SEQ_CST))
            return;
        cpprof__syscall(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
}

void
cpprof__recycle_resume(void)
{
    __atomic_fetch_sub(&n_paused, 1, __ATOMIC_SEQ_CST);
}

CPPROF__FIRST_STEP void
cpprof__recycle_forked(void)
{
    store_relaxed(&n_paused, 0u);
    store_relaxed(&is_recycling, 0u);
}
