/* SPDX-License-Identifier: MIT */
/* Threads that are cancelled while they wait; see stress_cancel.h. */
#include "stress_cancel.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Nobody posts, signals or ends these. */
static sem_t never;
static pthread_cond_t no_signal = PTHREAD_COND_INITIALIZER;
static pthread_t endless;

/* Of the thread that is to be cancelled. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Held by who cancels, until it did. */
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static int is_waiting;
static int n_cleaned;

static struct timespec
in_an_hour(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    t.tv_sec += 3600;
    return t;
}

/* ---- what is waited in ------------------------------------------------ */

static void
wait_cond(void)
{
    pthread_cond_wait(&no_signal, &lock);
}

static void
wait_cond_timed(void)
{
    const struct timespec t = in_an_hour(CLOCK_REALTIME);

    pthread_cond_timedwait(&no_signal, &lock, &t);
}

static void
wait_cond_clock(void)
{
    const struct timespec t = in_an_hour(CLOCK_MONOTONIC);

    pthread_cond_clockwait(&no_signal, &lock, CLOCK_MONOTONIC, &t);
}

static void
wait_sem(void)
{
    sem_wait(&never);
}

static void
wait_sem_timed(void)
{
    const struct timespec t = in_an_hour(CLOCK_REALTIME);

    sem_timedwait(&never, &t);
}

static void
wait_sem_clock(void)
{
    const struct timespec t = in_an_hour(CLOCK_MONOTONIC);

    sem_clockwait(&never, CLOCK_MONOTONIC, &t);
}

static void
wait_join(void)
{
    pthread_join(endless, NULL);
}

static void
wait_join_timed(void)
{
    const struct timespec t = in_an_hour(CLOCK_REALTIME);

    pthread_timedjoin_np(endless, NULL, &t);
}

static void
wait_join_clock(void)
{
    const struct timespec t = in_an_hour(CLOCK_MONOTONIC);

    pthread_clockjoin_np(endless, NULL, CLOCK_MONOTONIC, &t);
}

/* These are no cancellation points: the lock is got first. */

static void
wait_mutex(void)
{
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
    pthread_testcancel();
}

static void
wait_mutex_timed(void)
{
    const struct timespec t = in_an_hour(CLOCK_REALTIME);

    if (!pthread_mutex_timedlock(&held, &t))
        pthread_mutex_unlock(&held);
    pthread_testcancel();
}

static void
wait_to_read(void)
{
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    pthread_testcancel();
}

static void
wait_to_write(void)
{
    pthread_rwlock_wrlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    pthread_testcancel();
}

static void (*const points[])(void) = {
    wait_cond,       wait_cond_timed, wait_cond_clock,  wait_sem,
    wait_sem_timed,  wait_sem_clock,  wait_join,        wait_join_timed,
    wait_join_clock, wait_mutex,      wait_mutex_timed, wait_to_read,
    wait_to_write,
};
#define N_POINTS (sizeof points / sizeof *points)

/* ---- once ------------------------------------------------------------- */

/* Whatever it waited in, it has its lock when it is cleaned up. */
static void
clean_up(void *arg)
{
    (void)arg;
    if (!pthread_mutex_unlock(&lock))
        __atomic_fetch_add(&n_cleaned, 1, __ATOMIC_RELAXED);
}

static void *
wait_at(void *arg)
{
    void (*const *point)(void) = arg;

    pthread_mutex_lock(&lock);
    pthread_cleanup_push(clean_up, NULL);
    __atomic_store_n(&is_waiting, 1, __ATOMIC_RELEASE);
    for (;;)
        (*point)();
    pthread_cleanup_pop(1);
    return NULL;
}

bool
cancel_once(unsigned i)
{
    void (*const *point)(void) = &points[i % N_POINTS];
    int before = n_cleaned;
    void *result = NULL;
    pthread_t thread;

    __atomic_store_n(&is_waiting, 0, __ATOMIC_RELEASE);
    pthread_mutex_lock(&held);
    pthread_rwlock_wrlock(&rwlock);
    if (pthread_create(&thread, NULL, wait_at, (void *)point))
        return false;
    while (!__atomic_load_n(&is_waiting, __ATOMIC_ACQUIRE))
        usleep(50);
    usleep(i * 7919 % 300);
    pthread_cancel(thread);
    pthread_rwlock_unlock(&rwlock);
    pthread_mutex_unlock(&held);
    pthread_join(thread, &result);
    return result == PTHREAD_CANCELED && n_cleaned == before + 1;
}

static void *
sleep_for_ever(void *arg)
{
    for (;;)
        pause();
    return arg;
}

void
cancel_begin(void)
{
    sem_init(&never, 0, 0);
    if (pthread_create(&endless, NULL, sleep_for_ever, NULL))
        abort();
}

void
cancel_end(void)
{
    pthread_cancel(endless);
    pthread_join(endless, NULL);
}
