/* SPDX-License-Identifier: MIT */
/*
 * A slot is taken for another lock when nobody waits in it. Its count says
 * CLAIMED meanwhile; and who has counted itself in looks once more whether the
 * slot is still the lock's, after which it cannot be taken away. What has been
 * charged bears the number of the claim, so that a charge which began before a
 * claim changes nothing after it but .last, to about the time of the claim.
 *
 * Two threads may take a slot each for the same lock at the same moment: then
 * there are two, which are charged together.
 */
#include "collect/signal/waits/wait_table.h"

#include "collect/signal/tables/reserve.h"

/* .state: the sum of times above, the count below. Times are in ticks, modulo
 * 2^50: 208 days of waiting between one unlock and the next. */
#define COUNT_BITS 14
#define COUNT_MASK (((uint64_t)1 << COUNT_BITS) - 1)
#define CLAIMED    COUNT_MASK
#define TICK_BITS  4 /* 16 ns */

#define SUM_BITS (64 - COUNT_BITS)
#define SUM_MASK (((uint64_t)1 << SUM_BITS) - 1)

/* Slots are apart, so that locks do not share a cache line here. */
struct slot {
    _Alignas(64) uintptr_t lock;
    uint64_t state;
    uint64_t charged; /* what n t - S was at the last charge, modulo 2^50;
                       * above it the number of the claim */
    uint64_t last;    /* ticks: the time of it, or when the slot was taken;
                       * the lowest bit: a waiter gave up since, and its
                       * stripe still counts it */
    uint64_t gave_up; /* ticks: when one did last */
    uint64_t entered; /* ticks: when one came last */
    uint32_t arrived; /* waiters that have come since the last charge */
};
#define GAVE_UP UINT64_C(1)

/* Tunable. Who gave up is charged to the next who gives up the lock, if that
 * comes within 10 s: the lock may not even exist any more. Who was woken up
 * does not need a second. */
#define GAVE_UP_TICKS (UINT64_C(10000000000) >> TICK_BITS)
#define WAKES_TICKS   (UINT64_C(1000000000) >> TICK_BITS)

uint32_t cpprof__wait_stripes[CPPROF__WAIT_STRIPES];
static struct slot *slots; /* of each stripe; NULL: nobody ever waited */
static struct slot nobody[CPPROF__WAIT_SLOTS]; /* instead, for who looks */

static uint64_t
ticks_of(uint64_t ns)
{
    return ns >> TICK_BITS;
}

static struct slot *
slots_of(const void *lock)
{
    struct slot *all = load_acquire(&slots);

    return all ? &all[cpprof__wait_stripe(lock) * CPPROF__WAIT_SLOTS] : nobody;
}

static uint32_t *
stripe_of(const struct slot *s)
{
    return &cpprof__wait_stripes[(uint32_t)(s - slots) / CPPROF__WAIT_SLOTS];
}

/* n waiters that came at `ticks`, as .state counts them. */
static uint64_t
waiters(uint32_t n, uint64_t ticks)
{
    return n * ((ticks << COUNT_BITS) + 1);
}

/* Count threads in, if the slot is that lock's. Until it is seen that it is not
 * they are another's waiters, which have waited for next to nothing. */
static bool
add_waiters(struct slot *s, uintptr_t lock, uint32_t n, uint64_t ticks)
{
    uint64_t state = load_acquire(&s->state);

    if (load_relaxed(&s->lock) != lock)
        return false;
    do {
        /* The last count but CLAIMED is left free, too. */
        if ((state & COUNT_MASK) + n >= CLAIMED)
            return false;
    } while (!cas_acq_rel(&s->state, &state, state + waiters(n, ticks)));
    if (load_acquire(&s->lock) == lock) {
        store_relaxed(&s->entered, ticks);
        if (!(state & COUNT_MASK) && !(load_relaxed(&s->last) & GAVE_UP))
            store_relaxed(&s->arrived, 0); /* all that came are gone */
        add_relaxed(&s->arrived, n);
        return true;
    }
    __atomic_fetch_sub(&s->state, waiters(n, ticks), __ATOMIC_ACQ_REL);
    return false;
}

/* Nobody is charged any more for those who gave up. */
static void
forget_gave_up(struct slot *s)
{
    if (__atomic_fetch_and(&s->last, ~GAVE_UP, __ATOMIC_ACQ_REL) & GAVE_UP)
        __atomic_fetch_sub(stripe_of(s), 1, __ATOMIC_RELAXED);
}

/* Take a slot that nobody waits in. */
static bool
claim(struct slot *s, uintptr_t lock, uint32_t n, uint64_t ticks)
{
    uint64_t state = load_acquire(&s->state);
    uint64_t number;

    if (state & COUNT_MASK || n >= CLAIMED ||
        !cas_acq_rel(&s->state, &state, CLAIMED))
        return false;
    forget_gave_up(s);
    number = (load_relaxed(&s->charged) >> SUM_BITS) + 1;
    store_relaxed(&s->lock, lock);
    store_relaxed(&s->charged, number << SUM_BITS);
    store_relaxed(&s->last, ticks & ~GAVE_UP);
    store_relaxed(&s->entered, ticks);
    store_relaxed(&s->arrived, n);
    store_release(&s->state, waiters(n, ticks));
    return true;
}

uint32_t
cpprof__wait_table_add(const void *lock, uint32_t n, uint64_t now_ns)
{
    uint64_t ticks = ticks_of(now_ns);
    struct slot *first;
    uint32_t i;

    if (!cpprof__reserve_once((void **)&slots, CPPROF__WAIT_STRIPES *
                                                   CPPROF__WAIT_SLOTS *
                                                   sizeof *slots))
        return 0;
    first = slots_of(lock);
    __atomic_fetch_add(stripe_of(first), n, __ATOMIC_SEQ_CST);
    for (i = 0; i < CPPROF__WAIT_SLOTS; i++)
        if (add_waiters(&first[i], (uintptr_t)lock, n, ticks))
            return (uint32_t)(&first[i] - slots) + 1;
    for (i = 0; i < CPPROF__WAIT_SLOTS; i++)
        if (claim(&first[i], (uintptr_t)lock, n, ticks))
            return (uint32_t)(&first[i] - slots) + 1;
    __atomic_fetch_sub(stripe_of(first), n, __ATOMIC_RELAXED);
    return 0;
}

/* Modulo nothing: ticks of a clock that began at 0. */
static uint64_t
last_or(const struct slot *s, uint64_t start)
{
    uint64_t last = load_acquire(&s->last) & ~GAVE_UP;

    return last > start ? last : start;
}

/* As of when a waiter leaves. */
static uint64_t
end_of(const struct slot *s, enum cpprof__wait_result result, uint64_t start,
       uint64_t now)
{
    if (result == CPPROF__WAIT_GAVE_UP)
        return now;
    if (result == CPPROF__WAIT_NONE)
        return start;
    return last_or(s, start);
}

void
cpprof__wait_table_remove(uint32_t slot, enum cpprof__wait_result result,
                          uint64_t start_ns, uint64_t now_ns)
{
    struct slot *s = &slots[slot - 1];
    uint64_t end = end_of(s, result, ticks_of(start_ns), ticks_of(now_ns));
    bool stays = false;

    /* The stripe goes on to count one of them, for the next charge. */
    if (result == CPPROF__WAIT_GAVE_UP) {
        store_relaxed(&s->gave_up, end);
        stays =
            !(__atomic_fetch_or(&s->last, GAVE_UP, __ATOMIC_ACQ_REL) & GAVE_UP);
    }
    __atomic_fetch_sub(&s->state, waiters(1, end), __ATOMIC_ACQ_REL);
    if (!stays)
        __atomic_fetch_sub(stripe_of(s), 1, __ATOMIC_RELAXED);
}

/* ---- those who were woken up ------------------------------------------ */

/* At most n of a slot, which is that lock's; returns how many. */
static uint32_t
remove_some(struct slot *s, uintptr_t lock, uint32_t n, uint64_t woken)
{
    uint64_t state = load_acquire(&s->state);
    uint32_t left;

    do {
        uint64_t count = state & COUNT_MASK;

        if (!count || count == CLAIMED || load_acquire(&s->lock) != lock)
            return 0;
        left = count < n ? (uint32_t)count : n;
    } while (!cas_acq_rel(&s->state, &state,
                          state - waiters(left, last_or(s, woken))));
    __atomic_fetch_sub(stripe_of(s), left, __ATOMIC_RELAXED);
    return left;
}

void
cpprof__wait_table_remove_woken(const void *lock, uint32_t n, uint64_t woken_ns)
{
    const void *key = cpprof__wait_woken_for(lock);
    struct slot *first = slots_of(key);
    uint32_t i;

    for (i = 0; i < CPPROF__WAIT_SLOTS && n; i++)
        n -= remove_some(&first[i], (uintptr_t)key, n, ticks_of(woken_ns));
}

void
cpprof__wait_forget_woken(const void *lock, uint64_t now_ns)
{
    const void *key = cpprof__wait_woken_for(lock);
    struct slot *first = slots_of(key);
    uint64_t ticks = ticks_of(now_ns);
    uint32_t i;

    for (i = 0; i < CPPROF__WAIT_SLOTS; i++)
        if (load_acquire(&first[i].lock) == (uintptr_t)key &&
            ticks > load_relaxed(&first[i].entered) + WAKES_TICKS)
            remove_some(&first[i], (uintptr_t)key, CLAIMED, ticks);
}

/* ---- charging --------------------------------------------------------- */

void
cpprof__wait_forget_gave_up(const void *lock, uint64_t now_ns)
{
    struct slot *first = slots_of(lock);
    uint64_t ticks = ticks_of(now_ns);
    uint32_t i;

    for (i = 0; i < CPPROF__WAIT_SLOTS; i++)
        if (load_acquire(&first[i].last) & GAVE_UP &&
            ticks > load_relaxed(&first[i].gave_up) + GAVE_UP_TICKS)
            forget_gave_up(&first[i]);
}

bool
cpprof__wait_is_followed(const void *lock)
{
    struct slot *first = slots_of(lock);
    uint32_t i;

    for (i = 0; i < CPPROF__WAIT_SLOTS; i++)
        if ((load_acquire(&first[i].lock) | 1) == ((uintptr_t)lock | 1) &&
            (load_acquire(&first[i].state) & COUNT_MASK ||
             load_acquire(&first[i].last) & GAVE_UP))
            return true;
    return false;
}

/* What is left of a difference when its sign is taken from its highest bit. */
static uint64_t
positive(uint64_t difference)
{
    int64_t signed_ = (int64_t)(difference << COUNT_BITS) >> COUNT_BITS;

    return signed_ > 0 ? (uint64_t)signed_ : 0;
}

/* What is charged is that; 0: it was the turn of another lock, or of another
 * thread. Clocks are read in another order than the slot is changed, so the sum
 * may seem to shrink: nothing is charged then until it has grown again. */
static uint64_t
raise_charged(struct slot *s, uint64_t charged, uint64_t waited)
{
    uint64_t number = charged & ~SUM_MASK;

    while ((charged & ~SUM_MASK) == number && positive(waited - charged))
        if (cas_acq_rel(&s->charged, &charged, number | (waited & SUM_MASK)))
            return positive(waited - charged);
    return 0;
}

static uint64_t
charge(struct slot *s, uintptr_t lock, uint64_t ticks)
{
    uint64_t charged = load_acquire(&s->charged);
    uint64_t state, n, last;

    if (load_acquire(&s->lock) != lock)
        return 0;
    state = load_acquire(&s->state);
    n = state & COUNT_MASK;
    if (n == CLAIMED)
        return 0;
    last = swap_acq_rel(&s->last, ticks & ~GAVE_UP);
    if (last & GAVE_UP)
        __atomic_fetch_sub(stripe_of(s), 1, __ATOMIC_RELAXED);
    return raise_charged(s, charged, n * ticks - (state >> COUNT_BITS));
}

uint64_t
cpprof__wait_charge(const void *lock, uint64_t now_ns, uint32_t *arrived)
{
    struct slot *first = slots_of(lock);
    uint64_t sum = 0;
    uint32_t i;

    for (i = 0; i < CPPROF__WAIT_SLOTS; i++) {
        uint64_t charged;

        if (load_relaxed(&first[i].lock) != (uintptr_t)lock)
            continue;
        charged = charge(&first[i], (uintptr_t)lock, ticks_of(now_ns));
        if (charged && arrived && load_relaxed(&first[i].arrived))
            *arrived += swap_acq_rel(&first[i].arrived, 0);
        sum += charged;
    }
    return sum << TICK_BITS;
}

void
cpprof__wait_uncharge(const void *lock, uint64_t ns, uint32_t arrived)
{
    struct slot *first = slots_of(lock);
    uint32_t i;

    for (i = 0; i < CPPROF__WAIT_SLOTS; i++) {
        uint64_t charged = load_acquire(&first[i].charged);

        if (load_acquire(&first[i].lock) != (uintptr_t)lock)
            continue;
        while (!cas_acq_rel(&first[i].charged, &charged,
                            (charged & ~SUM_MASK) |
                                ((charged - ticks_of(ns)) & SUM_MASK)))
            ;
        add_relaxed(&first[i].arrived, arrived);
        return;
    }
}

/* ---- fork ------------------------------------------------------------- */

void
cpprof__wait_table_forked(void)
{
    uint32_t i, k;

    /* A store copies the page that the parent has: only where need be. */
    for (i = 0; i < CPPROF__WAIT_STRIPES; i++) {
        if (!load_relaxed(&cpprof__wait_stripes[i]))
            continue;
        store_relaxed(&cpprof__wait_stripes[i], 0);
        for (k = 0; k < CPPROF__WAIT_SLOTS; k++)
            slots[i * CPPROF__WAIT_SLOTS + k] = (struct slot){0};
    }
}
