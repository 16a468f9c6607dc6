/* SPDX-License-Identifier: MIT */
/*
 * Shared by all functions that wait or release a lock.
 *
 * While a profile of waits is on, a lock is tried first, and only if it is
 * taken the real call is timed. So every return code is a real one: that of
 * trying, unless it is EBUSY (a robust mutex whose owner died is locked by
 * then), or that of the real call. Arguments that the real call may refuse,
 * lock or no lock, go to it untried.
 *
 * All of these functions are hooks, which appear in no stack. The address of
 * the name itself becomes the leaf and so tells what was waited for.
 */
#ifndef INTERPOSE_LOCKS_H
#define INTERPOSE_LOCKS_H

#include "collect/signal/heap/heap.h"
#include "collect/signal/waits/waits.h"
#include "interpose/take_over.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmissing-attributes"
#endif

/* Take over a name that is the leaf of stacks. */
#define TAKE_OVER_WAIT(name, parameters, arguments)                            \
    TAKE_OVER(name, int, parameters, arguments)                                \
    extern __typeof__(name) name##_ours                                        \
        __attribute__((alias(#name), visibility("hidden")));                   \
    __attribute__((unused)) static const void *const name##_leaf =             \
        (const void *)name##_ours;

#define real(name) cpprof__real(name)

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

/*
 * A call that waits. When the thread is cancelled in there, or a handler jumps
 * out, the wait ends, too. That is glibc's older kind of a cleanup handler,
 * which is called from where the thread is cancelled, or by siglongjmp(). In C
 * pthread_cleanup_push() makes a jmp_buf, which stays behind for a later
 * cancellation if somebody jumps over it; in C++ it would need the compiler's
 * library. Without this kind such waits are found out later (waits.h).
 */
#ifdef __GLIBC__
/* NOLINTBEGIN(bugprone-reserved-identifier) */
void
_pthread_cleanup_push(struct _pthread_cleanup_buffer *buffer, void (*f)(void *),
                      void *arg);
void
_pthread_cleanup_pop(struct _pthread_cleanup_buffer *buffer, int call);

/* Frames of C that are unwound stay forbidden to who has the stack then. */
#ifdef __SANITIZE_ADDRESS__
void
__asan_handle_no_return(void);
#define FRAMES_END __asan_handle_no_return()
#else
#define FRAMES_END __asm__ volatile("") /* the call before is no tail call */
#endif
/* NOLINTEND(bugprone-reserved-identifier) */

CPPROF__HOOK __attribute__((unused)) static void
wait_was_unwound(void *wait)
{
    cpprof__wait_unwound(wait);
    FRAMES_END;
}

/* A child that has another thread's memory has its handlers, too. Coroutines
 * that a handler of signals switches do not leave their waits in order, and
 * their stacks may go before the thread ends: nothing of ours is left on one.
 */
#define UNWOUND_BEGIN(wait)                                                    \
    struct _pthread_cleanup_buffer unwound_;                                   \
    const bool may_unwind_ = (wait)->may_unwind;                               \
                                                                               \
    may_unwind_ ? _pthread_cleanup_push(&unwound_, wait_was_unwound, wait)     \
                : (void)0
#define UNWOUND_END may_unwind_ ? _pthread_cleanup_pop(&unwound_, 0) : (void)0
#else
#define UNWOUND_BEGIN(wait) (void)(wait)
#define UNWOUND_END         (void)0
#endif

/* failed: the code of a call that returned result_. */
#define WAIT_AS(name, kind, object, call, failed)                              \
    ({                                                                         \
        struct cpprof__wait wait_;                                             \
        int result_;                                                           \
                                                                               \
        cpprof__wait_begin(&wait_, kind, object, name##_leaf);                 \
        UNWOUND_BEGIN(&wait_);                                                 \
        result_ = (call);                                                      \
        cpprof__wait_end(&wait_, result_of(failed));                           \
        UNWOUND_END;                                                           \
        result_;                                                               \
    })
#define WAIT(name, kind, object, call)                                         \
    WAIT_AS(name, kind, object, call, result_)

/* Giving up a lock that others may wait for. What is charged is recorded when
 * they can go on already. */
#define GIVE_UP(name, object, call)                                            \
    ({                                                                         \
        struct cpprof__wait_charge charge_;                                    \
        bool is_due_ = cpprof__wait_release(object, &charge_);                 \
        int code_ = (call);                                                    \
                                                                               \
        if (is_due_ && code_)                                                  \
            cpprof__wait_unrelease(object, charge_);                           \
        else if (is_due_)                                                      \
            cpprof__wait_released(object, charge_, name##_leaf);               \
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

/* Those whose unlocking may fail know who holds them. */
static inline bool
is_held_by_caller(const pthread_mutex_t *m)
{
#ifdef __GLIBC__
    return m->__data.__kind == PTHREAD_MUTEX_TIMED_NP ||
           m->__data.__owner == (int)syscall(SYS_gettid);
#else
    return true;
#endif
}

/*
 * A wait for a condition gives up the mutex, if there is anybody to be charged
 * for. It is recorded while the mutex is held: later is when the wait is over,
 * and then it is held again.
 */
CPPROF__HOOK __attribute__((unused)) static void
give_up_for_condition(pthread_mutex_t *m, const void *leaf)
{
    struct cpprof__wait_charge charge;

    if (!cpprof__wait_may_charge(m) || is_locked_more_than_once(m) ||
        !is_held_by_caller(m))
        return;
    if (cpprof__wait_release(m, &charge))
        cpprof__wait_released(m, charge, leaf);
}

#define WAIT_FOR_CONDITION(name, c, m, call, failed)                           \
    ({                                                                         \
        give_up_for_condition((pthread_mutex_t *)(m), name##_leaf);            \
        WAIT_AS(name, CPPROF__WAITS_CONDITION, c, call, failed);               \
    })

/* The names do what is on, and again whenever that changes. */
void
cpprof__waits_follow(void);

#endif
