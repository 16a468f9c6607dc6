/* SPDX-License-Identifier: MIT */
/*
 * Mutexes. C++'s std::mutex and its kin come by here, too.
 *
 * Sources: pthread_mutex_lock(3p), pthread_mutex_timedlock(3p),
 * pthread_mutex_clocklock (glibc manual).
 */
#include "interpose/locks.h"

REAL(pthread_mutex_lock, int, (pthread_mutex_t * m), (m))
REAL(pthread_mutex_trylock, int, (pthread_mutex_t * m), (m))
REAL(pthread_mutex_unlock, int, (pthread_mutex_t * m), (m))
REAL(pthread_mutex_timedlock, int,
     (pthread_mutex_t * m, const struct timespec *end), (m, end))
REAL(pthread_mutex_clocklock, int,
     (pthread_mutex_t * m, clockid_t clock, const struct timespec *end),
     (m, clock, end))

CPPROF__HOOK static int
wait_for(pthread_mutex_t *m)
{
    return WAIT(CPPROF__WAITS_MUTEX_LOCK, m, real(pthread_mutex_lock)(m));
}

CPPROF_API int
pthread_mutex_lock(pthread_mutex_t *m)
{
    int code;

    if (cpprof__waits_are_off())
        return real(pthread_mutex_lock)(m);
    code = real(pthread_mutex_trylock)(m);
    if (__builtin_expect(code == EBUSY, 0))
        code = wait_for(m);
    FRAME;
    return code;
}

CPPROF__HOOK static int
wait_until(pthread_mutex_t *m, const struct timespec *end)
{
    return WAIT(CPPROF__WAITS_MUTEX_LOCK, m,
                real(pthread_mutex_timedlock)(m, end));
}

CPPROF_API int
pthread_mutex_timedlock(pthread_mutex_t *restrict m,
                        const struct timespec *restrict end)
{
    int code;

    if (cpprof__waits_are_off() || !is_time(end))
        return real(pthread_mutex_timedlock)(m, end);
    code = real(pthread_mutex_trylock)(m);
    if (__builtin_expect(code == EBUSY, 0))
        code = wait_until(m, end);
    FRAME;
    return code;
}

CPPROF__HOOK static int
wait_until_clock(pthread_mutex_t *m, clockid_t clock,
                 const struct timespec *end)
{
    return WAIT(CPPROF__WAITS_MUTEX_LOCK, m,
                real(pthread_mutex_clocklock)(m, clock, end));
}

CPPROF_API int
pthread_mutex_clocklock(pthread_mutex_t *restrict m, clockid_t clock,
                        const struct timespec *restrict end)
{
    int code;

    if (cpprof__waits_are_off() || !is_clock(clock) || !is_time(end) ||
        (clock != CLOCK_REALTIME && inherits_priority(m)))
        return real(pthread_mutex_clocklock)(m, clock, end);
    code = real(pthread_mutex_trylock)(m);
    if (__builtin_expect(code == EBUSY, 0))
        code = wait_until_clock(m, clock, end);
    FRAME;
    return code;
}

CPPROF__HOOK static int
unlock_waited_for(pthread_mutex_t *m)
{
    if (is_locked_more_than_once(m))
        return real(pthread_mutex_unlock)(m);
    return GIVE_UP(m, real(pthread_mutex_unlock)(m));
}

CPPROF_API int
pthread_mutex_unlock(pthread_mutex_t *m)
{
    int code;

    if (cpprof__waits_are_off() || !cpprof__wait_may_charge(m))
        return real(pthread_mutex_unlock)(m);
    code = unlock_waited_for(m);
    FRAME;
    return code;
}

void
cpprof__locks_find(void)
{
    pthread_mutex_lock_find();
    pthread_mutex_trylock_find();
    pthread_mutex_unlock_find();
    pthread_mutex_timedlock_find();
    pthread_mutex_clocklock_find();
}
