/* SPDX-License-Identifier: MIT */
/*
 * C11's mutexes, conditions and threads, which in glibc reach those of POSIX
 * without a name that could be taken over.
 *
 * Source: ISO C11 7.26.
 */
#include "interpose/locks.h"

#include <threads.h>

TAKE_OVER_WAIT(mtx_lock, (mtx_t * m), (m))
TAKE_OVER_WAIT(mtx_timedlock, (mtx_t * m, const struct timespec *end), (m, end))
TAKE_OVER_WAIT(mtx_unlock, (mtx_t * m), (m))
TAKE_OVER_WAIT(cnd_wait, (cnd_t * c, mtx_t *m), (c, m))
TAKE_OVER_WAIT(cnd_timedwait, (cnd_t * c, mtx_t *m, const struct timespec *end),
               (c, m, end))
TAKE_OVER_WAIT(thrd_join, (thrd_t thread, int *result), (thread, result))

/* As POSIX has it. */
static int
code_of(int result)
{
    switch (result) {
    case thrd_success:
        return 0;
    case thrd_timedout:
        return ETIMEDOUT;
    default:
        return EINVAL;
    }
}

/* glibc's mtx_t is a pthread_mutex_t, and nothing is asked of any other. */
static const pthread_mutex_t *
inside(const mtx_t *m)
{
    _Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "the same");
    return (const pthread_mutex_t *)m;
}

#define WAIT_C11(name, kind, object, call)                                     \
    WAIT_AS(name, kind, object, call, code_of(result_))

/* ---- mutexes ---------------------------------------------------------- */

CPPROF__HOOK static int
wait_for(mtx_t *m)
{
    return WAIT_C11(mtx_lock, CPPROF__WAITS_MUTEX_LOCK, m, real(mtx_lock)(m));
}

CPPROF__HOOK static int
mtx_lock_on(mtx_t *m)
{
    int result;

    result = real(mtx_trylock)(m);
    if (__builtin_expect(result == thrd_busy, 0))
        result = wait_for(m);
    return result;
}

CPPROF__HOOK static int
wait_until(mtx_t *m, const struct timespec *end)
{
    return WAIT_C11(mtx_timedlock, CPPROF__WAITS_MUTEX_LOCK, m,
                    real(mtx_timedlock)(m, end));
}

CPPROF__HOOK static int
mtx_timedlock_on(mtx_t *m, const struct timespec *end)
{
    int result;

    if (!is_time(end))
        return real(mtx_timedlock)(m, end);
    result = real(mtx_trylock)(m);
    if (__builtin_expect(result == thrd_busy, 0))
        result = wait_until(m, end);
    return result;
}

CPPROF__HOOK static int
unlock_waited_for(mtx_t *m)
{
    if (is_locked_more_than_once(inside(m)))
        return real(mtx_unlock)(m);
    return GIVE_UP(mtx_unlock, m, real(mtx_unlock)(m));
}

CPPROF__HOOK static int
mtx_unlock_on(mtx_t *m)
{
    int result;

    _Static_assert(thrd_success == 0, "as GIVE_UP() takes it");
    if (!cpprof__wait_may_charge(m))
        return real(mtx_unlock)(m);
    result = unlock_waited_for(m);
    return result;
}

/* ---- conditions ------------------------------------------------------- */

CPPROF__HOOK static int
wait_for_condition(cnd_t *c, mtx_t *m)
{
    return WAIT_FOR_CONDITION(cnd_wait, c, m, real(cnd_wait)(c, m),
                              code_of(result_));
}

CPPROF__HOOK static int
cnd_wait_on(cnd_t *c, mtx_t *m)
{
    int result;

    result = wait_for_condition(c, m);
    return result;
}

CPPROF__HOOK static int
wait_for_condition_until(cnd_t *c, mtx_t *m, const struct timespec *end)
{
    return WAIT_FOR_CONDITION(cnd_timedwait, c, m,
                              real(cnd_timedwait)(c, m, end), code_of(result_));
}

CPPROF__HOOK static int
cnd_timedwait_on(cnd_t *c, mtx_t *m, const struct timespec *end)
{
    int result;

    if (!is_time(end))
        return real(cnd_timedwait)(c, m, end);
    result = wait_for_condition_until(c, m, end);
    return result;
}

/* ---- joining ---------------------------------------------------------- */

CPPROF__HOOK static int
wait_for_end(thrd_t thread, int *result)
{
    return WAIT_AS(thrd_join, CPPROF__WAITS_JOIN, (void *)(uintptr_t)thread,
                   real(thrd_join)(thread, result), code_of(result_));
}

CPPROF__HOOK static int
thrd_join_on(thrd_t thread, int *result)
{
    void *value;
    int code;

    code = real(pthread_tryjoin_np)(thread, &value);
    if (code == 0 && result)
        *result = (int)(intptr_t)value;
    if (code)
        code = wait_for_end(thread, result);
    return code;
}
