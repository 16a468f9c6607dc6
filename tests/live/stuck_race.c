/* SPDX-License-Identifier: MIT */
/*
 * Threads that take locks, wait for conditions and join others, all of which go
 * on, while others ask who cannot, start and stop the watch, and fork: for the
 * sanitizers, and for what hangs or crashes.
 */
#include "dump.h"
#include "load.h"
#include "race.h"
#include "tap.h"

#include <cpprof/cpprof.h>
#include <cpprof/deadlock.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t mutexes[3] = {PTHREAD_MUTEX_INITIALIZER,
                                     PTHREAD_MUTEX_INITIALIZER,
                                     PTHREAD_MUTEX_INITIALIZER};
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static void *
locker(void *arg)
{
    unsigned i;

    while (!atomic_load(&enough)) {
        pthread_rwlock_wrlock(&rwlock);
        for (i = 0; i < 3; i++)
            pthread_mutex_lock(&mutexes[i]);
        usleep(200);
        while (i--)
            pthread_mutex_unlock(&mutexes[i]);
        pthread_rwlock_unlock(&rwlock);
        usleep(100);
        pthread_rwlock_rdlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
    }
    return arg;
}

struct order {
    pthread_cond_t ready; /* on the stack of who waits */
    bool is_ready;
};

static void *
guest(void *arg)
{
    struct order *order = arg;

    usleep(500);
    pthread_mutex_lock(&mutexes[2]);
    order->is_ready = true;
    pthread_cond_signal(&order->ready);
    pthread_mutex_unlock(&mutexes[2]);
    return NULL;
}

static void *
waiter(void *arg)
{
    while (!atomic_load(&enough)) {
        struct order order = {PTHREAD_COND_INITIALIZER, false};
        pthread_t thread;

        if (pthread_create(&thread, NULL, guest, &order))
            continue;
        pthread_mutex_lock(&mutexes[2]);
        while (!order.is_ready)
            pthread_cond_wait(&order.ready, &mutexes[2]);
        pthread_mutex_unlock(&mutexes[2]);
        pthread_join(thread, NULL);
    }
    return arg;
}

static atomic_int n_profiles, n_not_empty, n_told, n_watches;

static void *
reader(void *arg)
{
    while (!atomic_load(&enough)) {
        char *text = dump_text("threadleak", 2);

        atomic_fetch_add(&n_profiles, 1);
        if (!text || strcmp(text, "threadleak profile: total 0\n\n"))
            atomic_fetch_add(&n_not_empty, 1);
        free(text);
        usleep(2000);
    }
    return arg;
}

static void
told(const struct cpprof_deadlock *deadlock, void *ctx)
{
    (void)deadlock;
    (void)ctx;
    atomic_fetch_add(&n_told, 1);
}

static void *
watcher(void *arg)
{
    const struct cpprof_deadlock_options options = {.size = sizeof options,
                                                    .told = told};

    while (!atomic_load(&enough)) {
        if (!cpprof_deadlock_start(&options, NULL))
            atomic_fetch_add(&n_watches, 1);
        usleep(150000);
        cpprof_deadlock_stop();
    }
    return arg;
}

int
main(void)
{
    void *(*const roles[])(void *) = {locker, locker, locker,  waiter, waiter,
                                      reader, reader, watcher, watcher};

    race(roles, sizeof roles / sizeof *roles, 12);
    check_at_least(atomic_load(&n_profiles), 2, "profiles_were_taken");
    check_at_least(atomic_load(&n_watches), 2, "watches_were_started");
    check_equal(atomic_load(&n_not_empty), 0, "nobody_is_stuck");
    check_equal(atomic_load(&n_told), 0, "nobody_was_told");
    return check_done();
}
