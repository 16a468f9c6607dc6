/* SPDX-License-Identifier: MIT */
/*
 * A table of all interposed calls that wait, each with what prepares an object
 * to wait for, the call itself, and what a cancellation leaves behind.
 */
#include "lock_calls.h"

#include "load.h"
#include "tap.h"

#include <cpprof/profiles.h>

#include <pthread.h>
#include <semaphore.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

const char *const lock_call_names[LOCK_CALLS] = {
    "pthread_mutex_lock",
    "pthread_mutex_timedlock",
    "pthread_mutex_clocklock",
    "mtx_lock",
    "mtx_timedlock",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_timedrdlock",
    "pthread_rwlock_clockrdlock",
    "pthread_rwlock_wrlock",
    "pthread_rwlock_timedwrlock",
    "pthread_rwlock_clockwrlock",
    "pthread_barrier_wait",
    "a lock of the program's own",
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "pthread_cond_clockwait",
    "cnd_wait",
    "cnd_timedwait",
    "sem_wait",
    "sem_timedwait",
    "sem_clockwait",
    "pthread_join",
    "pthread_timedjoin_np",
    "thrd_join",
};
#define OWN             12
#define FIRST_CONDITION 13
#define FIRST_C11       16
#define FIRST_SEMAPHORE 18
#define FIRST_JOIN      21

/* Old ones stay as they were left. */
static struct objects {
    pthread_mutex_t held, free;
    mtx_t held_c11, free_c11;
    pthread_rwlock_t held_rw;
    pthread_barrier_t barrier;
    pthread_cond_t condition;
    cnd_t condition_c11;
    sem_t semaphore;
    pthread_t endless;
} all[16 * LOCK_CALLS], *now = all;

static void *
sleep_for_ever(void *arg)
{
    for (;;)
        pause();
    return arg;
}

bool
lock_call_is_cancellable(int which)
{
    return which >= FIRST_CONDITION;
}

void
lock_call_prepare(int which)
{
    if (now == all + sizeof all / sizeof *all)
        bail("too many objects");
    now++;
    pthread_mutex_init(&now->held, NULL);
    pthread_mutex_init(&now->free, NULL);
    mtx_init(&now->held_c11, mtx_timed);
    mtx_init(&now->free_c11, mtx_plain);
    pthread_rwlock_init(&now->held_rw, NULL);
    pthread_barrier_init(&now->barrier, NULL, 2);
    pthread_cond_init(&now->condition, NULL);
    cnd_init(&now->condition_c11);
    sem_init(&now->semaphore, 0, 0);
    pthread_mutex_lock(&now->held);
    mtx_lock(&now->held_c11);
    pthread_rwlock_wrlock(&now->held_rw);
    if (which >= FIRST_JOIN &&
        pthread_create(&now->endless, NULL, sleep_for_ever, NULL))
        bail("no thread");
}

static void
wait_for_lock(int which)
{
    struct timespec end = in_an_hour(CLOCK_REALTIME);
    struct timespec monotonic = in_an_hour(CLOCK_MONOTONIC);
    struct cpprof_wait wait;

    switch (which) {
    case 0:
        pthread_mutex_lock(&now->held);
        break;
    case 1:
        pthread_mutex_timedlock(&now->held, &end);
        break;
    case 2:
        pthread_mutex_clocklock(&now->held, CLOCK_MONOTONIC, &monotonic);
        break;
    case 3:
        mtx_lock(&now->held_c11);
        break;
    case 4:
        mtx_timedlock(&now->held_c11, &end);
        break;
    case 5:
        pthread_rwlock_rdlock(&now->held_rw);
        break;
    case 6:
        pthread_rwlock_timedrdlock(&now->held_rw, &end);
        break;
    case 7:
        pthread_rwlock_clockrdlock(&now->held_rw, CLOCK_MONOTONIC, &monotonic);
        break;
    case 8:
        pthread_rwlock_wrlock(&now->held_rw);
        break;
    case 9:
        pthread_rwlock_timedwrlock(&now->held_rw, &end);
        break;
    case 10:
        pthread_rwlock_clockwrlock(&now->held_rw, CLOCK_MONOTONIC, &monotonic);
        break;
    case 11:
        pthread_barrier_wait(&now->barrier);
        break;
    case OWN:
        cpprof_wait_begin(&wait, now);
        sleep_for_ever(NULL);
    }
}

static void
wait_for_condition(int which)
{
    struct timespec end = in_an_hour(CLOCK_REALTIME);
    struct timespec monotonic = in_an_hour(CLOCK_MONOTONIC);

    pthread_mutex_lock(&now->free);
    if (which == FIRST_CONDITION)
        pthread_cond_wait(&now->condition, &now->free);
    else if (which == FIRST_CONDITION + 1)
        pthread_cond_timedwait(&now->condition, &now->free, &end);
    else
        pthread_cond_clockwait(&now->condition, &now->free, CLOCK_MONOTONIC,
                               &monotonic);
}

static void
wait_for_c11_condition(int which)
{
    struct timespec end = in_an_hour(CLOCK_REALTIME);

    mtx_lock(&now->free_c11);
    if (which == FIRST_C11)
        cnd_wait(&now->condition_c11, &now->free_c11);
    else
        cnd_timedwait(&now->condition_c11, &now->free_c11, &end);
}

static void
wait_for_semaphore(int which)
{
    struct timespec end = in_an_hour(CLOCK_REALTIME);
    struct timespec monotonic = in_an_hour(CLOCK_MONOTONIC);

    if (which == FIRST_SEMAPHORE)
        sem_wait(&now->semaphore);
    else if (which == FIRST_SEMAPHORE + 1)
        sem_timedwait(&now->semaphore, &end);
    else
        sem_clockwait(&now->semaphore, CLOCK_MONOTONIC, &monotonic);
}

static void
wait_for_end(int which)
{
    struct timespec end = in_an_hour(CLOCK_REALTIME);

    if (which == FIRST_JOIN)
        pthread_join(now->endless, NULL);
    else if (which == FIRST_JOIN + 1)
        pthread_timedjoin_np(now->endless, NULL, &end);
    else
        thrd_join((thrd_t)now->endless, NULL);
}

void
lock_call_wait(int which)
{
    if (which >= FIRST_JOIN)
        wait_for_end(which);
    else if (which >= FIRST_SEMAPHORE)
        wait_for_semaphore(which);
    else if (which >= FIRST_C11)
        wait_for_c11_condition(which);
    else if (which >= FIRST_CONDITION)
        wait_for_condition(which);
    else
        wait_for_lock(which);
}

void
lock_call_cancelled(int which)
{
    if (which >= FIRST_C11 && which < FIRST_SEMAPHORE)
        mtx_unlock(&now->free_c11);
    else if (which >= FIRST_CONDITION && which < FIRST_C11)
        pthread_mutex_unlock(&now->free);
}
