/* SPDX-License-Identifier: MIT */
/*
 * The calls on mutexes that are taken over (locks.h); std::mutex of C++ and its
 * kin make them, too. A lock is tried first, and only one that is taken is a
 * wait.
 *
 * Sources: pthread_mutex_lock(3p), pthread_mutex_timedlock(3p),
 * pthread_mutex_clocklock (glibc manual).
 */
#include "interpose/locks.h"

#include "arch/place.h"

#if defined(__GLIBC__) && __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define HAS_SINGLE_THREADED
#endif

TAKE_OVER_WAIT(pthread_mutex_lock, (pthread_mutex_t * m), (m))
TAKE_OVER_WAIT(pthread_mutex_unlock, (pthread_mutex_t * m), (m))
TAKE_OVER_WAIT(pthread_mutex_timedlock,
               (pthread_mutex_t * m, const struct timespec *end), (m, end))
TAKE_OVER_WAIT(pthread_mutex_clocklock,
               (pthread_mutex_t * m, clockid_t clock,
                const struct timespec *end),
               (m, clock, end))

/*
 * glibc's trylock leaves a robust mutex that is not recoverable locked (2.36):
 * such a mutex is only looked at. Its word is the owner's thread id, with one
 * bit that says that the owner died.
 */
#define OWNER_DIED 0x40000000
#define OWNER      0x3fffffff
#define UNTRIED    (-1)

static inline bool
is_robust(const pthread_mutex_t *m)
{
#ifdef __GLIBC__
    return __builtin_expect(m->__data.__kind & 16, 0);
#else
    return false;
#endif
}

CPPROF__HOOK static int
look_at_robust(const pthread_mutex_t *m)
{
#ifdef __GLIBC__
    int word = load_relaxed(&m->__data.__lock);

    if (word & OWNER && !(word & OWNER_DIED) && (word & OWNER) != gettid())
        return EBUSY;
#endif
    return UNTRIED;
}

/* In a process with one thread glibc's lock avoids atomic instructions, its
 * trylock does not. So a mutex that is seen to be free is taken by the former.
 * If another process comes in between, the wait for it is not seen. */
static inline bool
is_free_for_the_only_thread(const pthread_mutex_t *m)
{
#ifdef HAS_SINGLE_THREADED
    return __libc_single_threaded && load_relaxed(&m->__data.__lock) == 0;
#else
    return false;
#endif
}

/* EBUSY: another has it; UNTRIED; else what locking it would have returned. */
static inline int
try(pthread_mutex_t *m)
{
    if (is_free_for_the_only_thread(m))
        return UNTRIED;
    return is_robust(m) ? look_at_robust(m) : real(pthread_mutex_trylock)(m);
}

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

    code = try(m);
    if (__builtin_expect(code == EBUSY, 0))
        return wait_for(m);
    if (code == UNTRIED)
        return real(pthread_mutex_lock)(m);
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
    code = try(m);
    if (__builtin_expect(code == EBUSY, 0))
        return wait_until(m, end);
    if (code == UNTRIED)
        return real(pthread_mutex_timedlock)(m, end);
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
    code = try(m);
    if (__builtin_expect(code == EBUSY, 0))
        return wait_until_clock(m, clock, end);
    if (code == UNTRIED)
        return real(pthread_mutex_clocklock)(m, clock, end);
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

/* ---- all of them ------------------------------------------------------ */

CPPROF__FIRST_STEP static void
follow(void)
{
    bool on;

    if (!cpprof__waits_are_off())
        cpprof__use();
    /* Another thread may be doing the same. */
    do {
        on = !cpprof__waits_are_off();
        cpprof__switch_group(CPPROF__WAITS, on);
    } while (on == cpprof__waits_are_off());
}

CPPROF__FIRST_STEP void
cpprof__waits_follow(void)
{
    store_release(&cpprof__waits_changed, follow);
    follow();
}
