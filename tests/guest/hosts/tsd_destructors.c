/* SPDX-License-Identifier: MIT */
/* guest: 2. Destructors of a thread's values, up to the last round that libc
 * gives them, and of thread_local variables, allocate, lock, wait, and make
 * threads that are there when theirs is gone. */
#include "host.h"

enum { ROUNDS = 4, THREADS = 24 };

static pthread_key_t key;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int n_destroyed, n_late;
static __thread void *kept[40];

static void *
late(void *arg)
{
    busy_ms(2);
    free(arg);
    pthread_mutex_lock(&lock);
    n_late++;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void
destroy(void *value)
{
    uintptr_t round = (uintptr_t)value;
    pthread_t t;
    int i;

    busy_ms(1);
    for (i = 0; i < 40; i++) {
        free(kept[i]);
        kept[i] = malloc(3000);
    }
    pthread_mutex_lock(&lock);
    n_destroyed++;
    pthread_mutex_unlock(&lock);
    if (round < ROUNDS) {
        pthread_setspecific(key, (void *)(round + 1));
        return;
    }
    for (i = 1; i < 40; i++)
        free(kept[i]);
    EXPECT(pthread_create(&t, NULL, late, kept[0]) == 0, "no thread");
    pthread_detach(t);
}

static void *
thread(void *arg)
{
    pthread_setspecific(key, (void *)1);
    busy_ms(2);
    if ((uintptr_t)arg % 2)
        pthread_exit(arg);
    return arg;
}

int
main(void)
{
    pthread_t threads[THREADS];
    uintptr_t i;
    void *result;

    pthread_key_create(&key, destroy);
    for (i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, thread, (void *)i) == 0, "%s",
               "no thread");
    for (i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &result);
        EXPECT(result == (void *)i, "another result");
    }
    pthread_mutex_lock(&lock);
    while (n_late < THREADS)
        pthread_cond_wait(&cond, &lock);
    EXPECT(n_destroyed == THREADS * ROUNDS, "%d destructions", n_destroyed);
    pthread_mutex_unlock(&lock);
    pthread_setspecific(key, (void *)1);
    return host_wrong;
}
