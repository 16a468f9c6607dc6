/* SPDX-License-Identifier: MIT */
/*
 * A lock on our own tables, which is not one of the program's that we watch. It
 * knows who has it: a handler that interrupted its holder can tell, and so can
 * a child made by fork.
 *
 * Nothing is done about such a lock before a fork. The child has the memory of
 * one moment of its parent: where a lock is free what it guards is whole, and
 * where another thread has it, which the child has not, that may be in the
 * midst of a change. cpprof__own_lock_in_child() frees it and says so. A lock
 * that the forking thread has itself, because a handler of the program forks,
 * stays its own: that thread goes on and gives it back in the child as well.
 */
#ifndef COLLECT_OWN_LOCK_H
#define COLLECT_OWN_LOCK_H

#include "arch/atomic.h"
#include "arch/clock.h"
#include "arch/regs.h"
#include "collect/signal/tables/thread.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct cpprof__own_lock {
    uintptr_t owner;    /* address of the thread's cpprof__self; 0: free */
    uint32_t n_waiting; /* in the kernel, or on the way there or back */
    uint32_t n_given;   /* futex: how often it was given while some waited */
};

/* Handlers of the program wait until the mask is set back: all but that of
 * SIGSYS. Where a filter has it answer a system call the kernel ends a process
 * that blocks it, and calls of ours may be among those. A filter may refuse
 * SIG_BLOCK, as tor's does, and where the mask cannot be read it is not set. */
static inline void
cpprof__block_signals(sigset_t *saved)
{
    uint64_t word;
    sigset_t set;

    sigemptyset(saved);
    if (pthread_sigmask(SIG_SETMASK, NULL, saved))
        return;
    memcpy(&word, saved, sizeof word);
    word |= ~((uint64_t)1 << (SIGSYS - 1));
    set = *saved;
    memcpy(&set, &word, sizeof word); /* libc leaves out its own */
    pthread_sigmask(SIG_SETMASK, &set, NULL);
}

/* Tunables. Tries before it sleeps: who holds it was put off its processor. It
 * looks again after so long at the latest, and so often where a filter refuses
 * futex(). */
#define CPPROF__OWN_LOCK_TRIES   200
#define CPPROF__OWN_LOCK_WAIT_NS 100000000u
#define CPPROF__OWN_LOCK_LOOK_NS 1000000u

static inline bool
cpprof__own_lock_is_mine(const struct cpprof__own_lock *lock)
{
    return load_relaxed(&lock->owner) == (uintptr_t)&cpprof__self;
}

/* Until it is given. All who wait must not look again and again: a thousand of
 * them would leave who holds it no processor. */
static inline void
cpprof__own_lock_wait(struct cpprof__own_lock *lock, uint64_t ns)
{
    const struct timespec t = cpprof__timespec_of(
        ns < CPPROF__OWN_LOCK_WAIT_NS ? ns : CPPROF__OWN_LOCK_WAIT_NS);
    long failed = 0;
    uint32_t seen;

    __atomic_add_fetch(&lock->n_waiting, 1, __ATOMIC_SEQ_CST);
    seen = load_acquire(&lock->n_given);
    if (__atomic_load_n(&lock->owner, __ATOMIC_SEQ_CST))
        failed = cpprof__syscall(SYS_futex, (long)&lock->n_given,
                                 FUTEX_WAIT_PRIVATE, seen, (long)&t, 0, 0);
    add_relaxed(&lock->n_waiting, -1u);
    if (failed && failed != -EAGAIN && failed != -EINTR && failed != -ETIMEDOUT)
        cpprof__sleep_ns(CPPROF__OWN_LOCK_LOOK_NS);
}

/* False when it is not to be had until a moment of CLOCK_MONOTONIC. */
static inline bool
cpprof__own_lock_take_until(struct cpprof__own_lock *lock, uint64_t until_ns)
{
    uintptr_t self = (uintptr_t)&cpprof__self, nobody = 0;
    uint64_t now = 0;
    unsigned tries = 0;

    while (!cas_acq_rel(&lock->owner, &nobody, self)) {
        nobody = 0;
        if (++tries <= CPPROF__OWN_LOCK_TRIES)
            continue;
        if (until_ns != UINT64_MAX &&
            (now = cpprof__clock_ns(CLOCK_MONOTONIC)) >= until_ns)
            return false;
        cpprof__own_lock_wait(lock, until_ns - now);
    }
    return true;
}

static inline void
cpprof__own_lock_take(struct cpprof__own_lock *lock)
{
    cpprof__own_lock_take_until(lock, UINT64_MAX);
}

static inline void
cpprof__own_lock_give(struct cpprof__own_lock *lock)
{
    __atomic_store_n(&lock->owner, (uintptr_t)0, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&lock->n_waiting, __ATOMIC_SEQ_CST))
        return;
    add_relaxed(&lock->n_given, 1u);
    cpprof__syscall(SYS_futex, (long)&lock->n_given, FUTEX_WAKE_PRIVATE, 1, 0,
                    0, 0);
}

/* In a child made by fork. True: another thread of the parent was at work in
 * there. */
static inline bool
cpprof__own_lock_in_child(struct cpprof__own_lock *lock)
{
    store_relaxed(&lock->n_waiting, 0u); /* threads of the parent */
    if (!load_relaxed(&lock->owner) || cpprof__own_lock_is_mine(lock))
        return false;
    cpprof__own_lock_give(lock);
    return true;
}

#endif
