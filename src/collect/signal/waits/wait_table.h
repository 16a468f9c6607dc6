/* SPDX-License-Identifier: MIT */
/*
 * Who waits for which lock, so that the one who gives it up knows how long
 * others have waited for it.
 *
 * For each lock that somebody waits for there is a slot with the number n of
 * waiters and the sum S of the times at which they came; a waiter that leaves
 * takes its leaving time out of S. So n t - S is, at any time t, how long all
 * of them have waited together up to then, and it never jumps. Whoever gives
 * the lock up is charged what that has grown by since the last time; nobody
 * has to walk a list of waiters, and nobody has to wait: n and S share a word.
 *
 * What passes between the giving up of a lock and the waking of the one who
 * gets it is nobody's fault: who leaves with the lock leaves as of the moment
 * when it was given up last.
 *
 * Slots lie in stripes by the address of the lock. What a stripe counts says
 * whether a look at its slots is worth it: that is all that unlocking costs
 * when nobody waits.
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
/* Waiters in each stripe, and one for each slot with such as gave up and are
 * not charged yet. */
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

/*
 * Whoever was woken up to take a lock, by a signal of a condition, has a slot
 * apart: none but the C library knows whether it waits for the lock yet. As a
 * lock's address is even, it is the one of this.
 */
static inline const void *
cpprof__wait_woken_for(const void *lock)
{
    return (const void *)((uintptr_t)lock | 1);
}

/* n threads begin to wait for lock. Returns the number of the slot, or 0 when
 * there is no room. Safety: AS, lock-free. */
uint32_t
cpprof__wait_table_add(const void *lock, uint32_t n, uint64_t now_ns);

/* How a wait ends. */
enum cpprof__wait_result {
    CPPROF__WAIT_GOT,     /* the thread has what it waited for */
    CPPROF__WAIT_GAVE_UP, /* it has not: a timeout, a cancellation */
    CPPROF__WAIT_NONE,    /* it did not wait: an error */
};

/* It waits no longer. Safety: AS, lock-free. */
void
cpprof__wait_table_remove(uint32_t slot, enum cpprof__wait_result result,
                          uint64_t start_ns, uint64_t now_ns);

/* The same of those of n that were woken up for lock, at the latest then, and
 * that are still known. */
void
cpprof__wait_table_remove_woken(const void *lock, uint32_t n,
                                uint64_t woken_ns);

/* Is there anybody to be charged for, woken up or not? Safety: AS. */
bool
cpprof__wait_is_followed(const void *lock);

/* Locks of its stripe that nobody gave up since a waiter did long before now
 * may not even exist any more. */
void
cpprof__wait_forget_gave_up(const void *lock, uint64_t now_ns);

/* The lock is given up now: the nanoseconds that all have waited since the
 * last time; *arrived, unless NULL, grows by how many of them have not been
 * charged before. Safety: AS, lock-free. */
uint64_t
cpprof__wait_charge(const void *lock, uint64_t now_ns, uint32_t *arrived);

/* It was not given up after all. */
void
cpprof__wait_uncharge(const void *lock, uint64_t ns, uint32_t arrived);

/* Nobody waits for the lock, as the lock itself says: who was woken up for it
 * long before now was not. */
void
cpprof__wait_forget_woken(const void *lock, uint64_t now_ns);

/* In a child made by fork: the parent's other threads wait no more. */
void
cpprof__wait_table_forked(void);

#endif
