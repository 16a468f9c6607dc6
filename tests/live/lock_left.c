/* SPDX-License-Identifier: MIT */
/*
 * Waits for a lock that do not end as they should: left by siglongjmp or by
 * asynchronous cancellation. Who holds the lock is charged for what others
 * really waited, and for no more.
 */
#include "load.h"
#include "others.h"
#include "tap.h"

#include <cpprof/profiles.h>
#include <cpprof/records.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define MS_US 1000 /* for usleep() */

static double
mutex_ms(void)
{
    static struct cpprof_wait_record records[500];
    size_t i, n = 0;
    double sum = 0;

    if (cpprof_mutex_records(records, 500, &n, NULL) || n > 500)
        bail("no records");
    for (i = 0; i < n; i++)
        sum += (double)records[i].delay_ns / 1e6;
    return sum;
}

static pthread_t
started(void *(*f)(void *), void *arg)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, f, arg))
        bail("no thread");
    return thread;
}

/* ---- left ------------------------------------------------------------- */

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static mtx_t held_c11;
static sigjmp_buf out;
static sem_t go_on;
static _Atomic int is_out;

/* Each call that waits for a mutex. */
static void
wait_for_it(int which)
{
    struct timespec end = in_an_hour(CLOCK_REALTIME);
    struct timespec monotonic = in_an_hour(CLOCK_MONOTONIC);

    switch (which) {
    case 0:
        pthread_mutex_lock(&held);
        break;
    case 1:
        pthread_mutex_timedlock(&held, &end);
        break;
    case 2:
        pthread_mutex_clocklock(&held, CLOCK_MONOTONIC, &monotonic);
        break;
    case 3:
        mtx_lock(&held_c11);
        break;
    case 4:
        mtx_timedlock(&held_c11, &end);
        break;
    }
}
static const char *const calls[] = {
    "pthread_mutex_lock", "pthread_mutex_timedlock", "pthread_mutex_clocklock",
    "mtx_lock", "mtx_timedlock"};

static void
hold(int which, bool on)
{
    if (which >= 3)
        on ? mtx_lock(&held_c11) : mtx_unlock(&held_c11);
    else
        on ? pthread_mutex_lock(&held) : pthread_mutex_unlock(&held);
}

static void *
waits_to_be_cancelled(void *which)
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    wait_for_it((int)(intptr_t)which);
    return NULL;
}

static void
jump(int signal)
{
    siglongjmp(out, 1);
}

static void
wait_out(sem_t *s)
{
    while (sem_wait(s))
        ;
}

static void *
waits_to_jump(void *which)
{
    if (!sigsetjmp(out, 1))
        wait_for_it((int)(intptr_t)which);
    is_out = 1;
    while (is_out < 2)
        usleep(MS_US);
    wait_out(&go_on);
    return NULL;
}

static double
now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* What several uncontended unlocks are charged. */
static double
charged_without_waiters(int which)
{
    double before = mutex_ms();
    int i;

    for (i = 0; i < 5; i++) {
        hold(which, true);
        usleep(10 * MS_US);
        hold(which, false);
    }
    return mutex_ms() - before;
}

static void
cancelled_waiter_is_charged_once(int which)
{
    double before = mutex_ms(), waited, start = now_ms(), end;
    pthread_t thread;
    char name[100];

    hold(which, true);
    thread = started(waits_to_be_cancelled, (void *)(intptr_t)which);
    let_others_sleep();
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    end = now_ms();
    usleep(30 * MS_US);
    hold(which, false);
    waited = mutex_ms() - before;
    snprintf(name, sizeof name, "%s cancelled: charged until then",
             calls[which]);
    check(waited > 0 && waited <= end - start, name);
    snprintf(name, sizeof name, "%s cancelled: and no more", calls[which]);
    check_at_most(charged_without_waiters(which), 1, name);
}

static void *
locks_and_unlocks(void *which)
{
    hold((int)(intptr_t)which, true);
    hold((int)(intptr_t)which, false);
    return NULL;
}

/* A thread that waits for 30 ms is all that is charged, however long ago
 * another was in there. */
static double
charged_for_another(int which)
{
    double before = mutex_ms();
    pthread_t thread;

    hold(which, true);
    thread = started(locks_and_unlocks, (void *)(intptr_t)which);
    usleep(30 * MS_US);
    hold(which, false);
    pthread_join(thread, NULL);
    return mutex_ms() - before;
}

static int
memory_write(void *file, const void *data, size_t n)
{
    return fwrite(data, 1, n, file) == n ? 0 : -1;
}

static int
memory_close(void *file, int failed)
{
    return fclose(file);
}

/* How many threads wait for a mutex, as a dump has it. */
static int
n_waiting(void)
{
    struct cpprof_profile_options options = {.size = sizeof options,
                                             .debug = 2};
    char *text = NULL, *at;
    int found = 0;
    size_t n;
    FILE *file = open_memstream(&text, &n);

    if (!file || cpprof_profile_write(
                     cpprof_profile_lookup("goroutine"),
                     &(struct cpprof_writer){sizeof(struct cpprof_writer),
                                             memory_write, memory_close, file},
                     &options, NULL))
        bail("no dump");
    for (at = text; (at = strstr(at, "waits for mutex")); at++)
        found++;
    free(text);
    return found;
}

/* A busy machine may let the other come too late, or us go on late. */
static double
nearest_to_30(int which)
{
    double nearest = 1e9;
    int i;

    for (i = 0; i < 8 && fabs(nearest - 30) > 15; i++) {
        double ms = charged_for_another(which);

        nearest = fabs(ms - 30) < fabs(nearest - 30) ? ms : nearest;
    }
    return nearest;
}

static void
waiter_that_jumps_out_is_forgotten(int which)
{
    pthread_t thread;
    char name[100];

    is_out = 0;
    hold(which, true);
    thread = started(waits_to_jump, (void *)(intptr_t)which);
    let_others_sleep();
    snprintf(name, sizeof name, "%s: a dump tells of its wait", calls[which]);
    check_equal(n_waiting(), 1, name);
    pthread_kill(thread, SIGUSR1);
    while (!is_out)
        usleep(MS_US);
    snprintf(name, sizeof name, "%s left: a dump does not", calls[which]);
    check_equal(n_waiting(), 0, name);
    hold(which, false);
    snprintf(name, sizeof name, "%s left: unlocks without waiters are free",
             calls[which]);
    check_at_most(charged_without_waiters(which), 1, name);
    is_out = 2;
    usleep(20 * MS_US);
    snprintf(name, sizeof name, "%s left: others are charged for themselves",
             calls[which]);
    check_near(nearest_to_30(which), 30, 15, name);
    sem_post(&go_on);
    pthread_join(thread, NULL);
}

/* ---- not permitted ----------------------------------------------------- */

static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t checked;

static void *
waits_without_the_mutex(void *arg)
{
    struct timespec end = {0, 0};

    *(int *)arg = pthread_cond_timedwait(&condition, &checked, &end);
    return NULL;
}

static void *
locks_checked(void *arg)
{
    pthread_mutex_lock(&checked);
    pthread_mutex_unlock(&checked);
    return NULL;
}

/* A mutex that a wait could not give up. */
static void
wait_that_is_not_permitted_is_not_charged(void)
{
    pthread_mutexattr_t attr;
    pthread_t thread;
    int code = 0;
    double before;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&checked, &attr);
    before = mutex_ms();
    pthread_mutex_lock(&checked);
    thread = started(locks_checked, NULL);
    let_others_sleep();
    usleep(30 * MS_US);
    pthread_join(started(waits_without_the_mutex, &code), NULL);
    check_equal(code, EPERM, "waiting without the mutex is not permitted");
    check_at_most(mutex_ms() - before, 0, "nor is it charged");
    pthread_mutex_unlock(&checked);
    pthread_join(thread, NULL);
    check_at_least(mutex_ms() - before, 1, "the real owner is");
}

int
main(void)
{
    struct sigaction action = {.sa_handler = jump};
    int i;

    sigaction(SIGUSR1, &action, NULL);
    mtx_init(&held_c11, mtx_timed);
    sem_init(&go_on, 0, 0);
    cpprof_block_set_rate(1);
    cpprof_mutex_set_fraction(1);
    for (i = 0; i < 5; i++) {
        cancelled_waiter_is_charged_once(i);
        waiter_that_jumps_out_is_forgotten(i);
    }
    wait_that_is_not_permitted_is_not_charged();
    return check_done();
}
