/* SPDX-License-Identifier: MIT */
/*
 * A slot without waiters may be claimed for another lock. Its count says
 * CLAIMED meanwhile. A thread that has counted itself in looks once more
 * whether the slot is still the lock's. After that the slot cannot be claimed.
 * .charged has the number of the claim in it, so that a charge that began
 * before a claim changes nothing after it.
 *
 * Two threads may claim a slot each for the same lock at the same moment. Then
 * the lock has two slots, which are charged together.
 */
#include "collect/signal/waits/wait_table.h"

#include "arch/place.h"
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
    uint32_t who;     /* number of the thread that gave the lock up last; 0: not
                       * known, or long ago */
    uint32_t n_ended; /* waits that are to be charged; each is still counted
                       * by its stripe */
    uint64_t ns;      /* what is to be charged with them, apart from .charged */
};

/* .who while a thread has given the lock up and not yet stored its number. */
#define SOON UINT32_MAX

uint32_t cpprof__wait_stripes[CPPROF__WAIT_STRIPES] CPPROF__LARGE;
static struct slot *slots; /* of each stripe; NULL: nobody ever waited */
static struct slot nobody[CPPROF__WAIT_SLOTS]; /* read while .slots is NULL */

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

/* One waiter that came at `ticks`, as .state counts it. */
static uint64_t
waiter(uint64_t ticks)
{
    return (ticks << COUNT_BITS) + 1;
}

/* Count a thread in, if the slot is that lock's. If the slot was claimed for
 * another lock meanwhile, the thread counts as a waiter of that one until it
 * finds out, which is next to no time. */
static bool
add_waiter(struct slot *s, uintptr_t lock, uint64_t ticks)
{
    uint64_t state = load_acquire(&s->state);

    if (load_relaxed(&s->lock) != lock)
        return false;
    do {
        /* The last count but CLAIMED is left free, too. */
        if ((state & COUNT_MASK) + 1 >= CLAIMED)
            return false;
    } while (!cas_acq_rel(&s->state, &state, state + waiter(ticks)));
    if (load_acquire(&s->lock) == lock) {
        if (!(state & COUNT_MASK))
            store_relaxed(&s->who, 0);
        return true;
    }
    __atomic_fetch_sub(&s->state, waiter(ticks), __ATOMIC_ACQ_REL);
    return false;
}

/* Waits that ended, for whoever is charged with them. */
static struct cpprof__wait_charge
take_ended(struct slot *s)
{
    struct cpprof__wait_charge charge = {0, 0};

    if (!load_relaxed(&s->n_ended))
        return charge;
    charge.n = __atomic_exchange_n(&s->n_ended, 0, __ATOMIC_SEQ_CST);
    if (charge.n)
        __atomic_fetch_sub(stripe_of(s), charge.n, __ATOMIC_RELAXED);
    if (load_relaxed(&s->ns))
        charge.ns = swap_acq_rel(&s->ns, 0);
    return charge;
}

/* Claim a slot without waiters. Waits for its former lock that are not charged
 * yet are lost. */
static bool
claim(struct slot *s, uintptr_t lock, uint64_t ticks)
{
    uint64_t state = load_acquire(&s->state);
    uint64_t number;

    if (state & COUNT_MASK || !cas_acq_rel(&s->state, &state, CLAIMED))
        return false;
    take_ended(s);
    number = (load_relaxed(&s->charged) >> SUM_BITS) + 1;
    store_relaxed(&s->lock, lock);
    store_relaxed(&s->charged, number << SUM_BITS);
    store_relaxed(&s->who, 0);
    store_release(&s->state, waiter(ticks));
    return true;
}

uint32_t
cpprof__wait_table_add(const void *lock, uint64_t now_ns)
{
    uint64_t ticks = ticks_of(now_ns);
    struct slot *first;
    uint32_t i;

    if (!cpprof__reserve_once((void **)&slots, CPPROF__WAIT_STRIPES *
                                                   CPPROF__WAIT_SLOTS *
                                                   sizeof *slots))
        return 0;
    first = slots_of(lock);
    __atomic_fetch_add(stripe_of(first), 1, __ATOMIC_SEQ_CST);
    for (i = 0; i < CPPROF__WAIT_SLOTS; i++)
        if (add_waiter(&first[i], (uintptr_t)lock, ticks))
            return (uint32_t)(&first[i] - slots) + 1;
    for (i = 0; i < CPPROF__WAIT_SLOTS; i++)
        if (claim(&first[i], (uintptr_t)lock, ticks))
            return (uint32_t)(&first[i] - slots) + 1;
    __atomic_fetch_sub(stripe_of(first), 1, __ATOMIC_RELAXED);
    return 0;
}

/* ---- charging --------------------------------------------------------- */

/* A difference modulo 2^50 if it is positive as a signed number, else 0. */
static uint64_t
positive(uint64_t difference)
{
    int64_t signed_ = (int64_t)(difference << COUNT_BITS) >> COUNT_BITS;

    return signed_ > 0 ? (uint64_t)signed_ : 0;
}

/* Returns what is to be charged; 0: another lock or another thread came first.
 * Clocks are read in another order than the slot is changed, so the sum may
 * seem to shrink. Then nothing is charged until it has grown again. */
static uint64_t
raise_charged(struct slot *s, uint64_t charged, uint64_t waited)
{
    uint64_t number = charged & ~SUM_MASK;

    while ((charged & ~SUM_MASK) == number && positive(waited - charged))
        if (cas_acq_rel(&s->charged, &charged, number | (waited & SUM_MASK)))
            return positive(waited - charged);
    return 0;
}

/* By how much the waiting has grown. */
static uint64_t
take_growth(struct slot *s, uintptr_t lock, uint64_t ticks)
{
    uint64_t charged = load_acquire(&s->charged);
    uint64_t state, n;

    if (load_acquire(&s->lock) != lock)
        return 0;
    state = load_acquire(&s->state);
    n = state & COUNT_MASK;
    if (n == CLAIMED)
        return 0;
    return raise_charged(s, charged, n * ticks - (state >> COUNT_BITS))
           << TICK_BITS;
}

static void
add_charge(struct cpprof__wait_charge *sum, struct slot *s, uintptr_t lock,
           uint64_t ticks)
{
    struct cpprof__wait_charge ended = take_ended(s);

    sum->ns += ended.ns + take_growth(s, lock, ticks);
    sum->n += ended.n;
}

/* This stores .n_ended and then reads .who; cpprof__wait_table_released()
 * stores .who and then reads .n_ended. So at least one of both sees the other's
 * store, and charges the wait. While .who is SOON the growth goes to .ns,
 * because the waiter may be done with the lock before the other has stored its
 * number. */
struct cpprof__wait_charge
cpprof__wait_table_remove(uint32_t slot, enum cpprof__wait_result result,
                          uint64_t start_ns, uint64_t now_ns, uint32_t *who)
{
    struct cpprof__wait_charge charge = {0, 0};
    struct slot *s = &slots[slot - 1];
    uintptr_t lock = load_relaxed(&s->lock);
    bool waited = result != CPPROF__WAIT_NONE;
    uint64_t ticks = ticks_of(waited ? now_ns : start_ns);

    *who = 0;
    if (waited)
        __atomic_fetch_add(&s->n_ended, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_sub(&s->state, waiter(ticks), __ATOMIC_SEQ_CST);
    if (!waited)
        __atomic_fetch_sub(stripe_of(s), 1, __ATOMIC_RELAXED);
    if (result != CPPROF__WAIT_GOT)
        return charge;
    if (load_acquire(&s->who) == SOON)
        __atomic_fetch_add(&s->ns, take_growth(s, lock, ticks),
                           __ATOMIC_SEQ_CST);
    *who = __atomic_load_n(&s->who, __ATOMIC_SEQ_CST);
    if (*who == SOON)
        *who = 0;
    if (*who)
        add_charge(&charge, s, lock, ticks);
    return charge;
}

bool
cpprof__wait_is_followed(const void *lock)
{
    struct slot *first = slots_of(lock);
    uint32_t i;

    for (i = 0; i < CPPROF__WAIT_SLOTS; i++)
        if (load_acquire(&first[i].lock) == (uintptr_t)lock &&
            (load_acquire(&first[i].state) & COUNT_MASK ||
             (load_acquire(&first[i].n_ended) &&
              load_acquire(&first[i].who) != SOON)))
            return true;
    return false;
}

struct cpprof__wait_charge
cpprof__wait_table_release(const void *lock, uint64_t now_ns)
{
    struct cpprof__wait_charge sum = {0, 0};
    struct slot *first = slots_of(lock);
    uint32_t i;

    for (i = 0; i < CPPROF__WAIT_SLOTS; i++) {
        if (load_relaxed(&first[i].lock) != (uintptr_t)lock)
            continue;
        add_charge(&sum, &first[i], (uintptr_t)lock, ticks_of(now_ns));
        store_release(&first[i].who, SOON);
    }
    return sum;
}

struct cpprof__wait_charge
cpprof__wait_table_released(const void *lock, uint32_t who, uint64_t now_ns)
{
    struct cpprof__wait_charge sum = {0, 0};
    struct slot *first = slots_of(lock);
    uint32_t i;

    for (i = 0; i < CPPROF__WAIT_SLOTS; i++) {
        if (load_relaxed(&first[i].lock) != (uintptr_t)lock)
            continue;
        __atomic_store_n(&first[i].who, who, __ATOMIC_SEQ_CST);
        if (who && __atomic_load_n(&first[i].n_ended, __ATOMIC_SEQ_CST))
            add_charge(&sum, &first[i], (uintptr_t)lock, ticks_of(now_ns));
    }
    return sum;
}

void
cpprof__wait_unrelease(const void *lock, struct cpprof__wait_charge charge)
{
    struct slot *first = slots_of(lock);
    uint32_t i;

    for (i = 0; i < CPPROF__WAIT_SLOTS; i++) {
        uint64_t charged = load_acquire(&first[i].charged);

        if (load_acquire(&first[i].lock) != (uintptr_t)lock)
            continue;
        while (!cas_acq_rel(&first[i].charged, &charged,
                            (charged & ~SUM_MASK) |
                                ((charged - ticks_of(charge.ns)) & SUM_MASK)))
            ;
        __atomic_fetch_add(stripe_of(&first[i]), charge.n, __ATOMIC_RELAXED);
        add_relaxed(&first[i].n_ended, charge.n);
        store_relaxed(&first[i].who, 0);
        return;
    }
}

/* ---- fork ------------------------------------------------------------- */

CPPROF__FIRST_STEP void
cpprof__wait_table_forked(void)
{
    uint32_t i, k;

    /* A store copies the page that the parent has: only where need be. */
    for (i = 0; load_relaxed(&slots) && i < CPPROF__WAIT_STRIPES; i++) {
        if (!load_relaxed(&cpprof__wait_stripes[i]))
            continue;
        store_relaxed(&cpprof__wait_stripes[i], 0);
        for (k = 0; k < CPPROF__WAIT_SLOTS; k++)
            slots[i * CPPROF__WAIT_SLOTS + k] = (struct slot){0};
    }
}
