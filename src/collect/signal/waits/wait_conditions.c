/* SPDX-License-Identifier: MIT */
/*
 * The table of conditions that are waited for.
 *
 * A slot belongs to one condition and mutex as long as anybody waits in it.
 * Its state packs three counts (waiters, woken, followed) into one word, so
 * that each change is one compare-and-swap. A slot without waiters is taken
 * over by claiming it: the word says CLAIMED while condition and mutex are
 * replaced. Whoever has counted itself in checks once more that the slot is
 * still for its condition, and from then on nobody can claim it.
 *
 * Waiters that a signal wakes are entered in the table of waiters
 * (wait_table.h) before they are counted as followed here, so that the one who
 * comes back finds them there.
 */
#include "collect/signal/waits/wait_conditions.h"

#include "collect/signal/tables/reserve.h"

/* .state, from bit 0: waiters, woken ones, followed ones; or CLAIMED. */
#define BITS    20
#define MASK    ((UINT64_C(1) << BITS) - 1)
#define CLAIMED (UINT64_C(1) << 3 * BITS)

struct slot {
    _Alignas(64) uintptr_t condition;
    uintptr_t mutex;
    uint64_t state;
    uint64_t woken_ns; /* the last time that one was followed */
};

struct numbers {
    uint64_t waiting, woken, followed; /* each of those before */
};

uint32_t cpprof__condition_stripes[CPPROF__CONDITION_STRIPES];
static struct slot *slots; /* of each stripe; NULL: nobody ever waited */
static struct slot nobody[CPPROF__CONDITION_SLOTS]; /* instead */

static struct slot *
slots_of(const void *condition)
{
    struct slot *all = load_acquire(&slots);

    return all ? &all[cpprof__condition_stripe(condition) *
                      CPPROF__CONDITION_SLOTS]
               : nobody;
}

static uint32_t *
stripe_of(const struct slot *s)
{
    return &cpprof__condition_stripes[(uint32_t)(s - slots) /
                                      CPPROF__CONDITION_SLOTS];
}

static struct numbers
numbers_of(uint64_t state)
{
    return (struct numbers){state & MASK, state >> BITS & MASK,
                            state >> 2 * BITS & MASK};
}

static uint64_t
state_of(struct numbers n)
{
    return n.followed << 2 * BITS | n.woken << BITS | n.waiting;
}

static bool
is_of(const struct slot *s, const void *condition, const void *mutex)
{
    return load_acquire(&s->condition) == (uintptr_t)condition &&
           load_relaxed(&s->mutex) == (uintptr_t)mutex;
}

static bool
add_waiters(struct slot *s, const void *condition, const void *mutex)
{
    uint64_t state = load_acquire(&s->state);

    do {
        if (!is_of(s, condition, mutex) || state & CLAIMED ||
            (state & MASK) == MASK)
            return false;
    } while (!cas_acq_rel(&s->state, &state, state + 1));
    if (is_of(s, condition, mutex))
        return true;
    /* Whoever it is counted for now may have woken it up. */
    cpprof__condition_remove((uint32_t)(s - slots) + 1, CPPROF__WAIT_GAVE_UP,
                             0);
    __atomic_fetch_add(stripe_of(s), 1, __ATOMIC_RELAXED);
    return false;
}

static bool
claim(struct slot *s, const void *condition, const void *mutex)
{
    uint64_t state = 0;

    if (load_relaxed(&s->state) || !cas_acq_rel(&s->state, &state, CLAIMED))
        return false;
    store_relaxed(&s->mutex, (uintptr_t)mutex);
    store_release(&s->condition, (uintptr_t)condition);
    store_release(&s->state, 1);
    return true;
}

uint32_t
cpprof__condition_add(const void *condition, const void *mutex)
{
    struct slot *first;
    uint32_t i;

    if (!cpprof__reserve_once((void **)&slots, CPPROF__CONDITION_STRIPES *
                                                   CPPROF__CONDITION_SLOTS *
                                                   sizeof *slots))
        return 0;
    first = slots_of(condition);
    __atomic_fetch_add(stripe_of(first), 1, __ATOMIC_SEQ_CST);
    for (i = 0; i < CPPROF__CONDITION_SLOTS; i++)
        if (add_waiters(&first[i], condition, mutex))
            return (uint32_t)(&first[i] - slots) + 1;
    for (i = 0; i < CPPROF__CONDITION_SLOTS; i++)
        if (claim(&first[i], condition, mutex))
            return (uint32_t)(&first[i] - slots) + 1;
    __atomic_fetch_sub(stripe_of(first), 1, __ATOMIC_RELAXED);
    return 0;
}

/* Who waits in the table of waiters, and is not to be counted there. */
static uint32_t
take_back(const void *mutex, uint32_t followed, uint32_t most, uint64_t now_ns)
{
    if (followed <= most)
        return followed;
    cpprof__wait_table_remove_woken(mutex, followed - most, now_ns);
    return most;
}

/* They are in the table before they are counted here, so that who comes back
 * finds them there. */
static void
wake(struct slot *s, const void *mutex, uint32_t k, uint32_t followed,
     uint64_t now_ns)
{
    uint64_t state = load_acquire(&s->state);
    struct numbers n;

    if (followed)
        store_relaxed(&s->woken_ns, now_ns);
    if (followed && !cpprof__wait_table_add(cpprof__wait_woken_for(mutex),
                                            followed, now_ns))
        followed = 0;
    do {
        uint64_t asleep;

        n = numbers_of(state);
        asleep = state & CLAIMED ? 0 : n.waiting - n.woken;
        k = asleep < k ? (uint32_t)asleep : k;
        followed = take_back(mutex, followed, k, now_ns);
        n.woken += k;
        n.followed += followed;
    } while (k && !cas_acq_rel(&s->state, &state, state_of(n)));
}

void
cpprof__condition_wake(const void *condition, bool all, uint64_t now_ns,
                       cpprof__condition_sample *sample)
{
    struct slot *first = slots_of(condition);
    uint32_t i;

    for (i = 0; i < CPPROF__CONDITION_SLOTS; i++) {
        uint64_t state = load_acquire(&first[i].state);
        struct numbers n = numbers_of(state);
        uint32_t k;

        if (load_acquire(&first[i].condition) != (uintptr_t)condition ||
            state & CLAIMED || n.waiting <= n.woken)
            continue;
        k = all ? (uint32_t)(n.waiting - n.woken) : 1;
        wake(&first[i], (const void *)load_relaxed(&first[i].mutex), k,
             sample(k), now_ns);
        if (!all)
            return;
    }
}

/* What is left when one comes back. Any of those who were woken up may be a
 * followed one. */
static struct numbers
without_one(struct numbers n, enum cpprof__wait_result result, uint32_t dice)
{
    n.waiting--;
    if (n.woken && result == CPPROF__WAIT_GOT) {
        if (dice % n.woken < n.followed)
            n.followed--;
        n.woken--;
    }
    if (n.woken > n.waiting)
        n.woken = n.waiting;
    if (n.followed > n.woken)
        n.followed = n.woken;
    return n;
}

void
cpprof__condition_remove(uint32_t slot, enum cpprof__wait_result result,
                         uint32_t dice)
{
    struct slot *s = &slots[slot - 1];
    const void *mutex = (const void *)load_relaxed(&s->mutex);
    uint64_t woken_ns = load_relaxed(&s->woken_ns);
    uint64_t state = load_acquire(&s->state);
    struct numbers before, after;

    do {
        before = numbers_of(state);
        after = without_one(before, result, dice);
    } while (!cas_acq_rel(&s->state, &state, state_of(after)));
    if (before.followed > after.followed)
        cpprof__wait_table_remove_woken(
            mutex, (uint32_t)(before.followed - after.followed), woken_ns);
    __atomic_fetch_sub(stripe_of(s), 1, __ATOMIC_RELAXED);
}

void
cpprof__conditions_forked(void)
{
    uint32_t i, k;

    for (i = 0; i < CPPROF__CONDITION_STRIPES; i++) {
        if (!load_relaxed(&cpprof__condition_stripes[i]))
            continue;
        store_relaxed(&cpprof__condition_stripes[i], 0);
        for (k = 0; k < CPPROF__CONDITION_SLOTS; k++)
            slots[i * CPPROF__CONDITION_SLOTS + k] = (struct slot){0};
    }
}
