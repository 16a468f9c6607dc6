/* SPDX-License-Identifier: MIT */
/*
 * The waiters of each lock, so that whoever releases it knows how long others
 * have waited for it.
 *
 * A lock with waiters has a slot with their number n and the sum S of the times
 * at which they came. A waiter that leaves subtracts its leaving time from S.
 * So at any time t, n t - S is how long all of them have waited together, and
 * it never jumps. Whoever releases the lock is charged the growth of that since
 * the last release. There is no list of waiters to walk, and nobody waits,
 * because n and S share a word.
 *
 * Between the giving up of a lock and the moment when a waiter has it, the
 * waiters wait on. That is charged to the thread that gave the lock up, too: by
 * the waiter when it leaves, under the number that the other has left in the
 * slot. So the
 * sum of all charges is the sum of all waits. A waiter that leaves before the
 * other has left its number, or without the lock, is kept in the slot as one
 * that ended, and is charged to the next who leaves a number there.
 *
 * Slots lie in stripes by the address of the lock. Each stripe has a count of
 * waiters. Unlocking reads only that count when nobody waits.
 */
#ifndef COLLECT_SIGNAL_WAIT_TABLE_H
#define COLLECT_SIGNAL_WAIT_TABLE_H

#include "arch/atomic.h"
#include "arch/mix.h"

#include <stdbool.h>
#include <stdint.h>

/* 1024 counts in 4 KiB. More: fewer locks look in vain for waiters that are
 * another lock's; but unlocking touches more of the cache. */
#define CPPROF__WAIT_STRIPE_BITS 10
#define CPPROF__WAIT_STRIPES     (1u << CPPROF__WAIT_STRIPE_BITS)

/* Locks of a stripe that somebody waits for at the same time; those beyond are
 * not followed. */
#define CPPROF__WAIT_SLOTS 8u

#pragma GCC visibility push(hidden)
/* Waiters in each stripe, and waits that ended and are not charged yet. */
extern uint32_t cpprof__wait_stripes[CPPROF__WAIT_STRIPES];
#pragma GCC visibility pop

static inline uint32_t
cpprof__wait_stripe(const void *lock)
{
    return (uint32_t)cpprof__spread_u64((uintptr_t)lock >> 3,
                                        CPPROF__WAIT_STRIPE_BITS);
}

/* May there be somebody to be charged for, at the giving up of this lock? */
static inline bool
cpprof__wait_may_charge(const void *lock)
{
    return __builtin_expect(
        load_relaxed(&cpprof__wait_stripes[cpprof__wait_stripe(lock)]) != 0, 0);
}

/* A thread begins to wait for lock. Returns the number of the slot, or 0 when
 * there is no room. Safety: AS, lock-free. */
uint32_t
cpprof__wait_table_add(const void *lock, uint64_t now_ns);

/* How a wait ends. */
enum cpprof__wait_result {
    CPPROF__WAIT_GOT,     /* the thread has what it waited for */
    CPPROF__WAIT_GAVE_UP, /* it has not: a timeout, a cancellation */
    CPPROF__WAIT_NONE,    /* it did not wait: an error */
};

/* What a thread that gives a lock up is charged with. */
struct cpprof__wait_charge {
    uint64_t ns; /* that others have waited since the last charge */
    uint32_t n;  /* waits that ended */
};

/* A wait ends. *who is the number of the thread that gave the lock up and is
 * charged with what is returned; 0: none is charged now. Safety: AS, lock-free.
 */
struct cpprof__wait_charge
cpprof__wait_table_remove(uint32_t slot, enum cpprof__wait_result result,
                          uint64_t start_ns, uint64_t now_ns, uint32_t *who);

/* Has the lock waiters, or waits that are not charged yet? Safety: AS. */
bool
cpprof__wait_is_followed(const void *lock);

/* The lock is about to be given up. Safety: AS, lock-free. */
struct cpprof__wait_charge
cpprof__wait_table_release(const void *lock, uint64_t now_ns);

/* The lock was given up by the thread that has this number; 0: none is charged.
 * Returns what there is to be charged since the call before. */
struct cpprof__wait_charge
cpprof__wait_table_released(const void *lock, uint32_t who, uint64_t now_ns);

/* The lock could not be given up: take the charge back. */
void
cpprof__wait_unrelease(const void *lock, struct cpprof__wait_charge charge);

/* In a child made by fork: the parent's other threads wait no more. */
void
cpprof__wait_table_forked(void);

#endif
