/* SPDX-License-Identifier: MIT */
/*
 * Who waits for which condition, so that those whom a signal wakes up wait for
 * the mutex from then on: whoever keeps them out of it is charged for that.
 *
 * The C library takes the mutex again inside of the wait, where nobody can
 * look. But who signals knows how many it wakes up, and since when; and who
 * comes back has the mutex. As waiters that were woken up are alike until then,
 * each condition has three numbers only: the waiters, the woken of them, and
 * how many of the woken are followed in the table of waiters (wait_table.h).
 *
 * What is not seen: who wakes up because of a timeout waits for the mutex, too,
 * but tells nobody. Who wakes up from a wait that began while the profile was
 * off is taken for another, which is followed without cause until it is woken
 * up itself; it is not charged, as the mutex knows that nobody waits for it
 * (cpprof__wait_release_mutex()), and forgotten after a second.
 */
#ifndef COLLECT_SIGNAL_WAIT_CONDITIONS_H
#define COLLECT_SIGNAL_WAIT_CONDITIONS_H

#include "arch/mix.h"
#include "collect/signal/waits/wait_table.h"

#include <stdbool.h>
#include <stdint.h>

/* 256 counts in a KiB, and conditions of each that are waited for at the same
 * time; those beyond are not followed. */
#define CPPROF__CONDITION_STRIPE_BITS 8
#define CPPROF__CONDITION_STRIPES     (1u << CPPROF__CONDITION_STRIPE_BITS)
#define CPPROF__CONDITION_SLOTS       8u

#pragma GCC visibility push(hidden)
extern uint32_t cpprof__condition_stripes[CPPROF__CONDITION_STRIPES];
#pragma GCC visibility pop

static inline uint32_t
cpprof__condition_stripe(const void *condition)
{
    return (uint32_t)cpprof__spread_u64((uintptr_t)condition >> 3,
                                        CPPROF__CONDITION_STRIPE_BITS);
}

/* May somebody wait for it? */
static inline bool
cpprof__condition_may_wake(const void *condition)
{
    return __builtin_expect(
        load_relaxed(
            &cpprof__condition_stripes[cpprof__condition_stripe(condition)]) !=
            0,
        0);
}

/* A thread begins to wait, and gives up mutex. Returns the number of the slot,
 * or 0 when there is no room. Safety: AS, lock-free. */
uint32_t
cpprof__condition_add(const void *condition, const void *mutex);

/* How many more of n waiters are to be followed; a fraction of them on
 * average. */
typedef uint32_t
cpprof__condition_sample(uint32_t n);

/* One waiter, or all, will be woken up now. */
void
cpprof__condition_wake(const void *condition, bool all, uint64_t now_ns,
                       cpprof__condition_sample *sample);

/* A waiter is back; dice: any number, by chance. */
void
cpprof__condition_remove(uint32_t slot, enum cpprof__wait_result result,
                         uint32_t dice);

/* In a child made by fork. */
void
cpprof__conditions_forked(void);

#endif
