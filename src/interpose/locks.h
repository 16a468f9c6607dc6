/* SPDX-License-Identifier: MIT */
/*
 * What the functions that wait, or give up a lock, have in common.
 *
 * While no profile of waits is on, each is a load and a jump to the next
 * definition. While one is, a lock is tried first; only who finds it taken goes
 * the long way, around the real call. So every return code is the real one's:
 * of trying, unless that says EBUSY (a robust mutex whose owner died is locked
 * by then), or of the real call. Arguments that the real call may refuse, lock
 * or no lock, go to it untried.
 *
 * The function itself is the leaf of the stacks that are recorded, which so
 * tell what was waited for; hence FRAME, against calls that replace it.
 */
#ifndef INTERPOSE_LOCKS_H
#define INTERPOSE_LOCKS_H

#include "collect/next.h"
#include "collect/signal/heap.h"
#include "collect/signal/waits.h"
#include <cpprof/status.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* The next definition of name; ends the process when there is none, since the
 * program has called a function that cannot be carried out. */
static inline void *
next_of(const char *name)
{
    void *found = cpprof__next_symbol(name);

    if (!found)
        abort();
    return found;
}

/* Declares real_NAME, which finds the next definition when it is called before
 * NAME_find(). Neither takes a lock or memory. */
#define REAL(name, result, parameters, arguments)                              \
    typedef result name##_fn parameters;                                       \
    static name##_fn name##_first;                                             \
    static name##_fn *name##_next = name##_first;                              \
                                                                               \
    static result name##_first parameters                                      \
    {                                                                          \
        name##_fn *next = (name##_fn *)next_of(#name);                         \
                                                                               \
        store_relaxed(&name##_next, next);                                     \
        return next arguments;                                                 \
    }                                                                          \
                                                                               \
    static void name##_find(void)                                              \
    {                                                                          \
        name##_fn *next = (name##_fn *)cpprof__next_symbol(#name);             \
                                                                               \
        if (next)                                                              \
            store_relaxed(&name##_next, next);                                 \
    }

#define real(name) load_relaxed(&name##_next)

/* After a call: it does not take the place of the caller's frame. */
#define FRAME __asm__ volatile("")

static inline bool
is_clock(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

static inline bool
is_time(const struct timespec *t)
{
    return t && t->tv_nsec >= 0 && t->tv_nsec < 1000000000;
}

/* What the return code of a call that waited means. */
static inline enum cpprof__wait_result
result_of(int code)
{
    switch (code) {
    case 0:
    case EOWNERDEAD:
        return CPPROF__WAIT_GOT;
    case ETIMEDOUT:
    case EINTR:
    case ENOTRECOVERABLE:
        return CPPROF__WAIT_GAVE_UP;
    default:
        return CPPROF__WAIT_NONE;
    }
}

/* A call that waits, and is no point of cancellation. */
#define WAIT(kind, object, call)                                               \
    ({                                                                         \
        struct cpprof__wait wait_;                                             \
        int code_;                                                             \
                                                                               \
        cpprof__wait_begin(&wait_, kind, object);                              \
        code_ = (call);                                                        \
        cpprof__wait_end(&wait_, result_of(code_));                            \
        code_;                                                                 \
    })

/* One that is: when the thread is cancelled in there, the wait ends, too.
 * failed: the code of a call that returned result_. */
CPPROF__HOOK __attribute__((unused)) static void
wait_was_cancelled(void *wait)
{
    cpprof__wait_end(wait, CPPROF__WAIT_GAVE_UP);
    FRAME;
}

#define WAIT_CANCELLABLE(kind, object, call, failed)                           \
    ({                                                                         \
        struct cpprof__wait wait_;                                             \
        int result_;                                                           \
                                                                               \
        cpprof__wait_begin(&wait_, kind, object);                              \
        pthread_cleanup_push(wait_was_cancelled, &wait_);                      \
        result_ = (call);                                                      \
        cpprof__wait_end(&wait_, result_of(failed));                           \
        pthread_cleanup_pop(0);                                                \
        result_;                                                               \
    })

/* Giving up a lock that others may wait for. What was charged is recorded when
 * they can go on already. */
#define GIVE_UP(object, call)                                                  \
    ({                                                                         \
        uint64_t waited_ = cpprof__wait_release(object);                       \
        int code_ = (call);                                                    \
                                                                               \
        if (waited_ && code_)                                                  \
            cpprof__wait_uncharge(object, waited_);                            \
        else if (waited_)                                                      \
            cpprof__wait_released(waited_);                                    \
        code_;                                                                 \
    })

/*
 * Of a mutex that is known only to the C library: does unlocking it leave it
 * locked, and does a wait until a time of another clock fail, taken or not?
 * Source: glibc bits/struct_mutex.h, nptl/pthreadP.h.
 */
static inline bool
is_locked_more_than_once(const pthread_mutex_t *m)
{
#ifdef __GLIBC__
    return (m->__data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE_NP &&
           m->__data.__count > 1;
#else
    return false;
#endif
}

static inline bool
inherits_priority(const pthread_mutex_t *m)
{
#ifdef __GLIBC__
    return m->__data.__kind & 32;
#else
    return true;
#endif
}

/* The part of a wait for a condition that gives up the mutex. */
CPPROF__HOOK __attribute__((unused)) static void
give_up_for_condition(pthread_mutex_t *m)
{
    uint64_t waited = 0;

    if (cpprof__wait_may_charge(m) && !is_locked_more_than_once(m))
        waited = cpprof__wait_release(m);
    if (waited)
        cpprof__wait_released(waited);
    FRAME;
}

/* Find the next definitions, early: later, modules come and go. */
void
cpprof__locks_find(void);
void
cpprof__rwlocks_find(void);
void
cpprof__conditions_find(void);
void
cpprof__semaphores_find(void);
void
cpprof__c11_locks_find(void);

#endif
