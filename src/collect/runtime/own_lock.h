/* SPDX-License-Identifier: MIT */
/*
 * A lock for a few instructions on our own tables, which is not one of the
 * program's that we watch, and which knows who has it: a fork in a signal
 * handler that interrupted its own thread in there must not wait for it. In the
 * child that thread goes on and gives the lock back as in the parent.
 */
#ifndef COLLECT_OWN_LOCK_H
#define COLLECT_OWN_LOCK_H

#include "arch/atomic.h"
#include "collect/signal/tables/thread.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct cpprof__own_lock {
    uintptr_t owner; /* address of the thread's cpprof__self; 0: free */
};

/* Tries before it sleeps: who holds it was put off its processor. */
#define CPPROF__OWN_LOCK_TRIES 200

static inline void
cpprof__own_lock_take(struct cpprof__own_lock *lock)
{
    uintptr_t self = (uintptr_t)&cpprof__self, nobody = 0;
    const struct timespec a_while = {0, 50000};
    unsigned tries = 0;

    while (!cas_acq_rel(&lock->owner, &nobody, self)) {
        nobody = 0;
        if (++tries > CPPROF__OWN_LOCK_TRIES)
            nanosleep(&a_while, NULL);
    }
}

static inline void
cpprof__own_lock_give(struct cpprof__own_lock *lock)
{
    store_release(&lock->owner, (uintptr_t)0);
}

/* Before a fork: take it, unless this thread has it; false then. */
static inline bool
cpprof__own_lock_take_for_fork(struct cpprof__own_lock *lock)
{
    if (load_relaxed(&lock->owner) == (uintptr_t)&cpprof__self)
        return false;
    cpprof__own_lock_take(lock);
    return true;
}

#endif
