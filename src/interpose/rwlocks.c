/* SPDX-License-Identifier: MIT */
/*
 * Read-write locks. Each reader that releases one is charged for what writers
 * have waited since the last release.
 *
 * Sources: pthread_rwlock_rdlock(3p) and those beside it,
 * pthread_rwlock_clockrdlock (glibc manual).
 */
#include "interpose/locks.h"

TAKE_OVER_WAIT(pthread_rwlock_rdlock, (pthread_rwlock_t * l), (l))
TAKE_OVER_WAIT(pthread_rwlock_wrlock, (pthread_rwlock_t * l), (l))
TAKE_OVER_WAIT(pthread_rwlock_unlock, (pthread_rwlock_t * l), (l))
TAKE_OVER_WAIT(pthread_rwlock_timedrdlock,
               (pthread_rwlock_t * l, const struct timespec *end), (l, end))
TAKE_OVER_WAIT(pthread_rwlock_timedwrlock,
               (pthread_rwlock_t * l, const struct timespec *end), (l, end))
TAKE_OVER_WAIT(pthread_rwlock_clockrdlock,
               (pthread_rwlock_t * l, clockid_t clock,
                const struct timespec *end),
               (l, clock, end))
TAKE_OVER_WAIT(pthread_rwlock_clockwrlock,
               (pthread_rwlock_t * l, clockid_t clock,
                const struct timespec *end),
               (l, clock, end))

/* Both ways to take one: try, then wait. */
#define TAKE(kind, take, try)                                                  \
    CPPROF__HOOK static int take##_waits(pthread_rwlock_t *l)                  \
    {                                                                          \
        return WAIT(take, kind, l, real(take)(l));                             \
    }                                                                          \
                                                                               \
    CPPROF__HOOK static int take##_on(pthread_rwlock_t *l)                     \
    {                                                                          \
        int code;                                                              \
                                                                               \
        code = real(try)(l);                                                   \
        if (__builtin_expect(code == EBUSY, 0))                                \
            code = take##_waits(l);                                            \
        return code;                                                           \
    }

TAKE(CPPROF__WAITS_READ_LOCK, pthread_rwlock_rdlock, pthread_rwlock_tryrdlock)
TAKE(CPPROF__WAITS_WRITE_LOCK, pthread_rwlock_wrlock, pthread_rwlock_trywrlock)

#define TAKE_UNTIL(kind, take, try)                                            \
    CPPROF__HOOK static int take##_waits(pthread_rwlock_t *l,                  \
                                         const struct timespec *end)           \
    {                                                                          \
        return WAIT(take, kind, l, real(take)(l, end));                        \
    }                                                                          \
                                                                               \
    CPPROF__HOOK static int take##_on(pthread_rwlock_t *l,                     \
                                      const struct timespec *end)              \
    {                                                                          \
        int code;                                                              \
                                                                               \
        if (!is_time(end))                                                     \
            return real(take)(l, end);                                         \
        code = real(try)(l);                                                   \
        if (__builtin_expect(code == EBUSY, 0))                                \
            code = take##_waits(l, end);                                       \
        return code;                                                           \
    }

TAKE_UNTIL(CPPROF__WAITS_READ_LOCK, pthread_rwlock_timedrdlock,
           pthread_rwlock_tryrdlock)
TAKE_UNTIL(CPPROF__WAITS_WRITE_LOCK, pthread_rwlock_timedwrlock,
           pthread_rwlock_trywrlock)

#define TAKE_UNTIL_CLOCK(kind, take, try)                                      \
    CPPROF__HOOK static int take##_waits(pthread_rwlock_t *l, clockid_t clock, \
                                         const struct timespec *end)           \
    {                                                                          \
        return WAIT(take, kind, l, real(take)(l, clock, end));                 \
    }                                                                          \
                                                                               \
    CPPROF__HOOK static int take##_on(pthread_rwlock_t *l, clockid_t clock,    \
                                      const struct timespec *end)              \
    {                                                                          \
        int code;                                                              \
                                                                               \
        if (!is_clock(clock) || !is_time(end))                                 \
            return real(take)(l, clock, end);                                  \
        code = real(try)(l);                                                   \
        if (__builtin_expect(code == EBUSY, 0))                                \
            code = take##_waits(l, clock, end);                                \
        return code;                                                           \
    }

TAKE_UNTIL_CLOCK(CPPROF__WAITS_READ_LOCK, pthread_rwlock_clockrdlock,
                 pthread_rwlock_tryrdlock)
TAKE_UNTIL_CLOCK(CPPROF__WAITS_WRITE_LOCK, pthread_rwlock_clockwrlock,
                 pthread_rwlock_trywrlock)

CPPROF__HOOK static int
unlock_waited_for(pthread_rwlock_t *l)
{
    return GIVE_UP(pthread_rwlock_unlock, l, real(pthread_rwlock_unlock)(l));
}

CPPROF__HOOK static int
pthread_rwlock_unlock_on(pthread_rwlock_t *l)
{
    int code;

    if (!cpprof__wait_may_charge(l))
        return real(pthread_rwlock_unlock)(l);
    code = unlock_waited_for(l);
    return code;
}
