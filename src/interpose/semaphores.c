/* SPDX-License-Identifier: MIT */
/*
 * Semaphores. Nobody holds one, so posting is charged with nothing: otherwise
 * the producer of a queue would be charged for every idle consumer.
 *
 * Waiting is a point of cancellation whether it waits or not; trying is none.
 *
 * Source: sem_wait(3p), sem_clockwait (glibc manual).
 */
#include "interpose/locks.h"

#include <semaphore.h>

TAKE_OVER_WAIT(sem_wait, (sem_t * s), (s))
TAKE_OVER_WAIT(sem_timedwait, (sem_t * s, const struct timespec *end), (s, end))
TAKE_OVER_WAIT(sem_clockwait,
               (sem_t * s, clockid_t clock, const struct timespec *end),
               (s, clock, end))

/* Is there one to be had? */
static bool
try(sem_t *s)
{
    int before = errno;

    pthread_testcancel();
    if (real(sem_trywait)(s) == 0)
        return true;
    errno = before;
    return false;
}

/* Whatever is recorded, errno is as the call left it. */
#define WAIT_FOR_SEMAPHORE(name, s, call)                                      \
    WAIT_AS(name, CPPROF__WAITS_SEMAPHORE, s, call, result_ ? errno : 0)

CPPROF__HOOK static int
wait_for(sem_t *s)
{
    return WAIT_FOR_SEMAPHORE(sem_wait, s, real(sem_wait)(s));
}

CPPROF__HOOK static int
sem_wait_on(sem_t *s)
{
    int result;

    result = try(s) ? 0 : wait_for(s);
    return result;
}

CPPROF__HOOK static int
wait_until(sem_t *s, const struct timespec *end)
{
    return WAIT_FOR_SEMAPHORE(sem_timedwait, s, real(sem_timedwait)(s, end));
}

CPPROF__HOOK static int
sem_timedwait_on(sem_t *s, const struct timespec *end)
{
    int result;

    if (!is_time(end))
        return real(sem_timedwait)(s, end);
    result = try(s) ? 0 : wait_until(s, end);
    return result;
}

CPPROF__HOOK static int
wait_until_clock(sem_t *s, clockid_t clock, const struct timespec *end)
{
    return WAIT_FOR_SEMAPHORE(sem_clockwait, s,
                              real(sem_clockwait)(s, clock, end));
}

CPPROF__HOOK static int
sem_clockwait_on(sem_t *s, clockid_t clock, const struct timespec *end)
{
    int result;

    if (!is_clock(clock) || !is_time(end))
        return real(sem_clockwait)(s, clock, end);
    result = try(s) ? 0 : wait_until_clock(s, clock, end);
    return result;
}
