/* SPDX-License-Identifier: MIT */
/*
 * Mutexes. C++'s std::mutex and its kin come by here, too.
 *
 * Sources: pthread_mutex_lock(3p), pthread_mutex_timedlock(3p),
 * pthread_mutex_clocklock (glibc manual).
 */
#include "interpose/locks.h"

TAKE_OVER(pthread_mutex_lock, int, (pthread_mutex_t * m), (m))
REAL(pthread_mutex_trylock, int, (pthread_mutex_t * m), (m))
TAKE_OVER(pthread_mutex_unlock, int, (pthread_mutex_t * m), (m))
TAKE_OVER(pthread_mutex_timedlock, int,
          (pthread_mutex_t * m, const struct timespec *end), (m, end))
TAKE_OVER(pthread_mutex_clocklock, int,
          (pthread_mutex_t * m, clockid_t clock, const struct timespec *end),
          (m, clock, end))

CPPROF__HOOK static int
wait_for(pthread_mutex_t *m)
{
    return WAIT(pthread_mutex_lock, CPPROF__WAITS_MUTEX_LOCK, m,
                real(pthread_mutex_lock)(m));
}

CPPROF__HOOK static int
pthread_mutex_lock_on(pthread_mutex_t *m)
{
    int code;

    code = real(pthread_mutex_trylock)(m);
    if (__builtin_expect(code == EBUSY, 0))
        code = wait_for(m);
    return code;
}

CPPROF__HOOK static int
wait_until(pthread_mutex_t *m, const struct timespec *end)
{
    return WAIT(pthread_mutex_timedlock, CPPROF__WAITS_MUTEX_LOCK, m,
                real(pthread_mutex_timedlock)(m, end));
}

CPPROF__HOOK static int
pthread_mutex_timedlock_on(pthread_mutex_t *m, const struct timespec *end)
{
    int code;

    if (!is_time(end))
        return real(pthread_mutex_timedlock)(m, end);
    code = real(pthread_mutex_trylock)(m);
    if (__builtin_expect(code == EBUSY, 0))
        code = wait_until(m, end);
    return code;
}

CPPROF__HOOK static int
wait_until_clock(pthread_mutex_t *m, clockid_t clock,
                 const struct timespec *end)
{
    return WAIT(pthread_mutex_clocklock, CPPROF__WAITS_MUTEX_LOCK, m,
                real(pthread_mutex_clocklock)(m, clock, end));
}

CPPROF__HOOK static int
pthread_mutex_clocklock_on(pthread_mutex_t *m, clockid_t clock,
                           const struct timespec *end)
{
    int code;

    if (!is_clock(clock) || !is_time(end) ||
        (clock != CLOCK_REALTIME && inherits_priority(m)))
        return real(pthread_mutex_clocklock)(m, clock, end);
    code = real(pthread_mutex_trylock)(m);
    if (__builtin_expect(code == EBUSY, 0))
        code = wait_until_clock(m, clock, end);
    return code;
}

CPPROF__HOOK static int
unlock_waited_for(pthread_mutex_t *m)
{
    if (is_locked_more_than_once(m))
        return real(pthread_mutex_unlock)(m);
    return GIVE_UP(pthread_mutex_unlock, m, real(pthread_mutex_unlock)(m));
}

CPPROF__HOOK static int
pthread_mutex_unlock_on(pthread_mutex_t *m)
{
    int code;

    if (!cpprof__wait_may_charge(m))
        return real(pthread_mutex_unlock)(m);
    code = unlock_waited_for(m);
    return code;
}

void
cpprof__locks_set(bool on)
{
    pthread_mutex_lock_set(on);
    pthread_mutex_trylock_find();
    pthread_mutex_unlock_set(on);
    pthread_mutex_timedlock_set(on);
    pthread_mutex_clocklock_set(on);
}

/* ---- all of them ------------------------------------------------------ */

static void
follow(void)
{
    bool on;

    /* Another thread may be doing the same. */
    do {
        on = !cpprof__waits_are_off();
        cpprof__locks_set(on);
        cpprof__rwlocks_set(on);
        cpprof__conditions_set(on);
        cpprof__semaphores_set(on);
        cpprof__c11_locks_set(on);
    } while (on == cpprof__waits_are_off());
}

void
cpprof__waits_start(void)
{
    store_release(&cpprof__waits_changed, follow);
    follow();
}
