/* SPDX-License-Identifier: MIT */
/*
 * Condition variables, barriers, and the end of threads.
 *
 * A wait for a condition gives up the mutex, for which its holder is charged as
 * for unlocking it. The time in which it waits to have the mutex back, inside
 * of the C library, is part of the wait.
 *
 * Sources: pthread_cond_wait(3p), pthread_barrier_wait(3p), pthread_join(3p),
 * pthread_tryjoin_np(3).
 */
#include "interpose/locks.h"

REAL(pthread_cond_wait, int, (pthread_cond_t * c, pthread_mutex_t *m), (c, m))
REAL(pthread_cond_timedwait, int,
     (pthread_cond_t * c, pthread_mutex_t *m, const struct timespec *end),
     (c, m, end))
REAL(pthread_cond_clockwait, int,
     (pthread_cond_t * c, pthread_mutex_t *m, clockid_t clock,
      const struct timespec *end),
     (c, m, clock, end))
REAL(pthread_barrier_wait, int, (pthread_barrier_t * b), (b))
REAL(pthread_join, int, (pthread_t thread, void **result), (thread, result))
REAL(pthread_tryjoin_np, int, (pthread_t thread, void **result),
     (thread, result))
REAL(pthread_timedjoin_np, int,
     (pthread_t thread, void **result, const struct timespec *end),
     (thread, result, end))
REAL(pthread_clockjoin_np, int,
     (pthread_t thread, void **result, clockid_t clock,
      const struct timespec *end),
     (thread, result, clock, end))

/* ---- conditions ------------------------------------------------------- */

CPPROF__HOOK static int
wait_for(pthread_cond_t *c, pthread_mutex_t *m)
{
    give_up_for_condition(m);
    return WAIT_CANCELLABLE(CPPROF__WAITS_CONDITION, c,
                            real(pthread_cond_wait)(c, m), result_);
}

CPPROF_API int
pthread_cond_wait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m)
{
    int code;

    if (cpprof__waits_are_off())
        return real(pthread_cond_wait)(c, m);
    code = wait_for(c, m);
    FRAME;
    return code;
}

CPPROF__HOOK static int
wait_until(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *end)
{
    give_up_for_condition(m);
    return WAIT_CANCELLABLE(CPPROF__WAITS_CONDITION, c,
                            real(pthread_cond_timedwait)(c, m, end), result_);
}

CPPROF_API int
pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m,
                       const struct timespec *restrict end)
{
    int code;

    if (cpprof__waits_are_off() || !is_time(end))
        return real(pthread_cond_timedwait)(c, m, end);
    code = wait_until(c, m, end);
    FRAME;
    return code;
}

CPPROF__HOOK static int
wait_until_clock(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
                 const struct timespec *end)
{
    give_up_for_condition(m);
    return WAIT_CANCELLABLE(CPPROF__WAITS_CONDITION, c,
                            real(pthread_cond_clockwait)(c, m, clock, end),
                            result_);
}

CPPROF_API int
pthread_cond_clockwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m,
                       clockid_t clock, const struct timespec *restrict end)
{
    int code;

    if (cpprof__waits_are_off() || !is_clock(clock) || !is_time(end))
        return real(pthread_cond_clockwait)(c, m, clock, end);
    code = wait_until_clock(c, m, clock, end);
    FRAME;
    return code;
}

/* ---- barriers --------------------------------------------------------- */

/* The last that comes has not waited; its code is none of result_of(). */
CPPROF__HOOK static int
wait_for_all(pthread_barrier_t *b)
{
    return WAIT(CPPROF__WAITS_BARRIER, b, real(pthread_barrier_wait)(b));
}

CPPROF_API int
pthread_barrier_wait(pthread_barrier_t *b)
{
    int code;

    if (cpprof__waits_are_off())
        return real(pthread_barrier_wait)(b);
    code = wait_for_all(b);
    FRAME;
    return code;
}

/* ---- joining ---------------------------------------------------------- */

CPPROF__HOOK static int
wait_for_end(pthread_t thread, void **result)
{
    return WAIT_CANCELLABLE(CPPROF__WAITS_JOIN, (void *)thread,
                            real(pthread_join)(thread, result), result_);
}

CPPROF_API int
pthread_join(pthread_t thread, void **result)
{
    int code;

    if (cpprof__waits_are_off())
        return real(pthread_join)(thread, result);
    code = real(pthread_tryjoin_np)(thread, result);
    if (code == EBUSY)
        code = wait_for_end(thread, result);
    FRAME;
    return code;
}

CPPROF__HOOK static int
wait_for_end_until(pthread_t thread, void **result, const struct timespec *end)
{
    return WAIT_CANCELLABLE(CPPROF__WAITS_JOIN, (void *)thread,
                            real(pthread_timedjoin_np)(thread, result, end),
                            result_);
}

CPPROF_API int
pthread_timedjoin_np(pthread_t thread, void **result,
                     const struct timespec *end)
{
    int code;

    if (cpprof__waits_are_off() || !is_time(end))
        return real(pthread_timedjoin_np)(thread, result, end);
    code = real(pthread_tryjoin_np)(thread, result);
    if (code == EBUSY)
        code = wait_for_end_until(thread, result, end);
    FRAME;
    return code;
}

CPPROF__HOOK static int
wait_for_end_until_clock(pthread_t thread, void **result, clockid_t clock,
                         const struct timespec *end)
{
    return WAIT_CANCELLABLE(
        CPPROF__WAITS_JOIN, (void *)thread,
        real(pthread_clockjoin_np)(thread, result, clock, end), result_);
}

CPPROF_API int
pthread_clockjoin_np(pthread_t thread, void **result, clockid_t clock,
                     const struct timespec *end)
{
    int code;

    if (cpprof__waits_are_off() || !is_clock(clock) || !is_time(end))
        return real(pthread_clockjoin_np)(thread, result, clock, end);
    code = real(pthread_tryjoin_np)(thread, result);
    if (code == EBUSY)
        code = wait_for_end_until_clock(thread, result, clock, end);
    FRAME;
    return code;
}

void
cpprof__conditions_find(void)
{
    pthread_cond_wait_find();
    pthread_cond_timedwait_find();
    pthread_cond_clockwait_find();
    pthread_barrier_wait_find();
    pthread_join_find();
    pthread_tryjoin_np_find();
    pthread_timedjoin_np_find();
    pthread_clockjoin_np_find();
}
