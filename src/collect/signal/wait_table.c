/* SPDX-License-Identifier: MIT */
/*
 * A slot is taken for another lock when nobody waits in it. Its count says
 * CLAIMED meanwhile; and who has counted itself in looks once more whether the
 * slot is still the lock's, after which it cannot be taken away.
 *
 * Two threads may take a slot each for the same lock at the same moment: then
 * there are two, which are charged together.
 */
#include "collect/signal/wait_table.h"

/* .state: the sum of times above, the count below. Times are in ticks, modulo
 * 2^50: 208 days of waiting between one unlock and the next. */
#define COUNT_BITS 14
#define COUNT_MASK (((uint64_t)1 << COUNT_BITS) - 1)
#define CLAIMED    COUNT_MASK
#define TICK_BITS  4 /* 16 ns */

struct slot {
    uintptr_t lock;
    uint64_t state;
    uint64_t charged; /* what n t - S was at the last charge, modulo 2^50 */
    uint64_t last;    /* ticks: the time of it, or when the slot was taken;
                       * the lowest bit: a waiter gave up since, and its
                       * stripe still counts it */
};
#define GAVE_UP UINT64_C(1)

uint32_t cpprof__wait_stripes[CPPROF__WAIT_STRIPES];
static struct slot slots[CPPROF__WAIT_STRIPES * CPPROF__WAIT_SLOTS];

static uint64_t
ticks_of(uint64_t ns)
{
    return ns >> TICK_BITS;
}

static struct slot *
slots_of(const void *lock)
{
    return &slots[cpprof__wait_stripe(lock) * CPPROF__WAIT_SLOTS];
}

static uint32_t *
stripe_of(const struct slot *s)
{
    return &cpprof__wait_stripes[(uint32_t)(s - slots) / CPPROF__WAIT_SLOTS];
}

/* One waiter that came at `ticks`, as .state counts it. */
static uint64_t
one(uint64_t ticks)
{
    return (ticks << COUNT_BITS) + 1;
}

/* Count a thread in, if the slot is that lock's. */
static bool
join(struct slot *s, uintptr_t lock, uint64_t ticks)
{
    uint64_t state = load_acquire(&s->state);

    if (load_relaxed(&s->lock) != lock)
        return false;
    do {
        /* The last count but CLAIMED is left free, too. */
        if ((state & COUNT_MASK) >= CLAIMED - 1)
            return false;
    } while (!cas_acq_rel(&s->state, &state, state + one(ticks)));
    if (load_acquire(&s->lock) == lock)
        return true;
    __atomic_fetch_sub(&s->state, one(ticks), __ATOMIC_ACQ_REL);
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
claim(struct slot *s, uintptr_t lock, uint64_t ticks)
{
    uint64_t state = load_acquire(&s->state);

    if (state & COUNT_MASK || !cas_acq_rel(&s->state, &state, CLAIMED))
        return false;
    forget_gave_up(s);
    store_relaxed(&s->lock, lock);
    store_relaxed(&s->charged, 0);
    store_relaxed(&s->last, ticks & ~GAVE_UP);
    store_release(&s->state, one(ticks));
    return true;
}

uint32_t
cpprof__wait_enter(const void *lock, uint64_t now_ns)
{
    uint64_t ticks = ticks_of(now_ns);
    struct slot *first = slots_of(lock);
    uint32_t i;

    __atomic_fetch_add(stripe_of(first), 1, __ATOMIC_SEQ_CST);
    for (i = 0; i < CPPROF__WAIT_SLOTS; i++)
        if (join(&first[i], (uintptr_t)lock, ticks))
            return (uint32_t)(&first[i] - slots) + 1;
    for (i = 0; i < CPPROF__WAIT_SLOTS; i++)
        if (claim(&first[i], (uintptr_t)lock, ticks))
            return (uint32_t)(&first[i] - slots) + 1;
    __atomic_fetch_sub(stripe_of(first), 1, __ATOMIC_RELAXED);
    return 0;
}

/* As of when a waiter leaves. */
static uint64_t
end_of(const struct slot *s, enum cpprof__wait_result result, uint64_t start,
       uint64_t now)
{
    uint64_t last;

    if (result == CPPROF__WAIT_GAVE_UP)
        return now;
    if (result == CPPROF__WAIT_NONE)
        return start;
    last = load_acquire(&s->last) & ~GAVE_UP;
    /* Modulo nothing: ticks of a clock that began at 0. */
    return last > start ? last : start;
}

void
cpprof__wait_leave(uint32_t slot, enum cpprof__wait_result result,
                   uint64_t start_ns, uint64_t now_ns)
{
    struct slot *s = &slots[slot - 1];
    uint64_t end = end_of(s, result, ticks_of(start_ns), ticks_of(now_ns));
    bool stays = false;

    /* The stripe goes on to count one of them, for the next charge. */
    if (result == CPPROF__WAIT_GAVE_UP)
        stays =
            !(__atomic_fetch_or(&s->last, GAVE_UP, __ATOMIC_ACQ_REL) & GAVE_UP);
    __atomic_fetch_sub(&s->state, one(end), __ATOMIC_ACQ_REL);
    if (!stays)
        __atomic_fetch_sub(stripe_of(s), 1, __ATOMIC_RELAXED);
}

/* What is left of a difference when its sign is taken from its highest bit. */
static uint64_t
positive(uint64_t difference)
{
    int64_t signed_ = (int64_t)(difference << COUNT_BITS) >> COUNT_BITS;

    return signed_ > 0 ? (uint64_t)signed_ : 0;
}

/* Clocks are read in another order than the slot is changed, so the sum may
 * seem to shrink: nothing is charged then until it has grown again. */
static uint64_t
charge(struct slot *s, uint64_t ticks)
{
    uint64_t state = load_acquire(&s->state);
    uint64_t n = state & COUNT_MASK;
    uint64_t waited = (n * ticks - (state >> COUNT_BITS)) << COUNT_BITS;
    uint64_t charged = load_acquire(&s->charged), last;

    if (n == CLAIMED)
        return 0;
    last = swap_acq_rel(&s->last, ticks & ~GAVE_UP);
    if (last & GAVE_UP)
        __atomic_fetch_sub(stripe_of(s), 1, __ATOMIC_RELAXED);
    waited >>= COUNT_BITS;
    while (positive(waited - charged))
        if (cas_acq_rel(&s->charged, &charged, waited))
            return positive(waited - charged);
    return 0;
}

uint64_t
cpprof__wait_charge(const void *lock, uint64_t now_ns)
{
    struct slot *first = slots_of(lock);
    uint64_t sum = 0;
    uint32_t i;

    for (i = 0; i < CPPROF__WAIT_SLOTS; i++)
        if (load_acquire(&first[i].lock) == (uintptr_t)lock)
            sum += charge(&first[i], ticks_of(now_ns));
    return sum << TICK_BITS;
}

void
cpprof__wait_uncharge(const void *lock, uint64_t ns)
{
    struct slot *first = slots_of(lock);
    uint32_t i;

    for (i = 0; i < CPPROF__WAIT_SLOTS; i++) {
        if (load_acquire(&first[i].lock) != (uintptr_t)lock)
            continue;
        __atomic_fetch_sub(&first[i].charged, ticks_of(ns), __ATOMIC_ACQ_REL);
        return;
    }
}

void
cpprof__wait_table_forked(void)
{
    uint32_t i, k;

    /* A store copies the page that the parent has: only where need be. */
    for (i = 0; i < CPPROF__WAIT_STRIPES; i++) {
        if (!load_relaxed(&cpprof__wait_stripes[i]))
            continue;
        store_relaxed(&cpprof__wait_stripes[i], 0);
        for (k = 0; k < CPPROF__WAIT_SLOTS; k++) {
            struct slot *s = &slots[i * CPPROF__WAIT_SLOTS + k];

            s->lock = 0;
            s->charged = 0;
            s->last = 0;
            s->state = 0;
        }
    }
}
