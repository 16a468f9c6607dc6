/* SPDX-License-Identifier: MIT */
/*
 * Condition variables, barriers, and the end of threads.
 *
 * A wait for a condition gives up the mutex, for which its holder is charged as
 * for unlocking it. Who is woken up waits for the mutex inside of the C
 * library, where nobody can look: that is part of the wait for the condition,
 * and nobody is charged for it.
 *
 * Sources: pthread_cond_wait(3p), pthread_barrier_wait(3p), pthread_join(3p),
 * pthread_tryjoin_np(3).
 */
#include "interpose/locks.h"

TAKE_OVER_WAIT(pthread_cond_wait, (pthread_cond_t * c, pthread_mutex_t *m),
               (c, m))
TAKE_OVER_WAIT(pthread_cond_timedwait,
               (pthread_cond_t * c, pthread_mutex_t *m,
                const struct timespec *end),
               (c, m, end))
TAKE_OVER_WAIT(pthread_cond_clockwait,
               (pthread_cond_t * c, pthread_mutex_t *m, clockid_t clock,
                const struct timespec *end),
               (c, m, clock, end))
TAKE_OVER_WAIT(pthread_barrier_wait, (pthread_barrier_t * b), (b))
TAKE_OVER_WAIT(pthread_join, (pthread_t thread, void **result),
               (thread, result))
TAKE_OVER_WAIT(pthread_timedjoin_np,
               (pthread_t thread, void **result, const struct timespec *end),
               (thread, result, end))
TAKE_OVER_WAIT(pthread_clockjoin_np,
               (pthread_t thread, void **result, clockid_t clock,
                const struct timespec *end),
               (thread, result, clock, end))

/* ---- conditions ------------------------------------------------------- */

CPPROF__HOOK static int
wait_for(pthread_cond_t *c, pthread_mutex_t *m)
{
    return WAIT_FOR_CONDITION(pthread_cond_wait, c, m,
                              real(pthread_cond_wait)(c, m), result_);
}

CPPROF__HOOK static int
pthread_cond_wait_on(pthread_cond_t *c, pthread_mutex_t *m)
{
    int code;

    code = wait_for(c, m);
    return code;
}

CPPROF__HOOK static int
wait_until(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *end)
{
    return WAIT_FOR_CONDITION(pthread_cond_timedwait, c, m,
                              real(pthread_cond_timedwait)(c, m, end), result_);
}

CPPROF__HOOK static int
pthread_cond_timedwait_on(pthread_cond_t *c, pthread_mutex_t *m,
                          const struct timespec *end)
{
    int code;

    if (!is_time(end))
        return real(pthread_cond_timedwait)(c, m, end);
    code = wait_until(c, m, end);
    return code;
}

CPPROF__HOOK static int
wait_until_clock(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
                 const struct timespec *end)
{
    return WAIT_FOR_CONDITION(pthread_cond_clockwait, c, m,
                              real(pthread_cond_clockwait)(c, m, clock, end),
                              result_);
}

CPPROF__HOOK static int
pthread_cond_clockwait_on(pthread_cond_t *c, pthread_mutex_t *m,
                          clockid_t clock, const struct timespec *end)
{
    int code;

    if (!is_clock(clock) || !is_time(end))
        return real(pthread_cond_clockwait)(c, m, clock, end);
    code = wait_until_clock(c, m, clock, end);
    return code;
}

/* ---- barriers --------------------------------------------------------- */

/* The last thread that arrives has not waited; result_of() does not know its
 * return code. */
CPPROF__HOOK static int
wait_for_all(pthread_barrier_t *b)
{
    return WAIT(pthread_barrier_wait, CPPROF__WAITS_BARRIER, b,
                real(pthread_barrier_wait)(b));
}

CPPROF__HOOK static int
pthread_barrier_wait_on(pthread_barrier_t *b)
{
    int code;

    code = wait_for_all(b);
    return code;
}

/* ---- joining ---------------------------------------------------------- */

CPPROF__HOOK static int
wait_for_end(pthread_t thread, void **result)
{
    return WAIT_AS(pthread_join, CPPROF__WAITS_JOIN, (void *)thread,
                   real(pthread_join)(thread, result), result_);
}

CPPROF__HOOK static int
pthread_join_on(pthread_t thread, void **result)
{
    int code;

    code = real(pthread_tryjoin_np)(thread, result);
    if (code == EBUSY)
        code = wait_for_end(thread, result);
    return code;
}

CPPROF__HOOK static int
wait_for_end_until(pthread_t thread, void **result, const struct timespec *end)
{
    return WAIT_AS(pthread_timedjoin_np, CPPROF__WAITS_JOIN, (void *)thread,
                   real(pthread_timedjoin_np)(thread, result, end), result_);
}

CPPROF__HOOK static int
pthread_timedjoin_np_on(pthread_t thread, void **result,
                        const struct timespec *end)
{
    int code;

    if (!is_time(end))
        return real(pthread_timedjoin_np)(thread, result, end);
    code = real(pthread_tryjoin_np)(thread, result);
    if (code == EBUSY)
        code = wait_for_end_until(thread, result, end);
    return code;
}

CPPROF__HOOK static int
wait_for_end_until_clock(pthread_t thread, void **result, clockid_t clock,
                         const struct timespec *end)
{
    return WAIT_AS(pthread_clockjoin_np, CPPROF__WAITS_JOIN, (void *)thread,
                   real(pthread_clockjoin_np)(thread, result, clock, end),
                   result_);
}

CPPROF__HOOK static int
pthread_clockjoin_np_on(pthread_t thread, void **result, clockid_t clock,
                        const struct timespec *end)
{
    int code;

    if (!is_clock(clock) || !is_time(end))
        return real(pthread_clockjoin_np)(thread, result, clock, end);
    code = real(pthread_tryjoin_np)(thread, result);
    if (code == EBUSY)
        code = wait_for_end_until_clock(thread, result, clock, end);
    return code;
}
