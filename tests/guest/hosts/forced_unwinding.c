/* SPDX-License-Identifier: MIT */
/* guest: 2. pthread_exit() and a cancellation unwind through functions of the
 * program that have cleanups, from inside locks, waits, allocation by a
 * callback, and qsort(). */
#include "host.h"

static int n_cleaned;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static void
clean(int *unused)
{
    __atomic_add_fetch(&n_cleaned, 1, __ATOMIC_SEQ_CST);
}

static void
unlock(void *m)
{
    pthread_mutex_unlock(m);
}

static int
compare(const void *a, const void *b)
{
    int mark __attribute__((cleanup(clean))) = 0;

    free(malloc(5000));
    if (*(const int *)a == 77 && *(const int *)b != 77)
        pthread_exit((void *)a);
    return *(const int *)a - *(const int *)b;
}

static void *
sorts(void *arg)
{
    int mark __attribute__((cleanup(clean))) = 0, values[100], i;

    for (i = 0; i < 100; i++)
        values[i] = 99 - i;
    busy_ms(3);
    qsort(values, 100, sizeof *values, compare);
    return NULL;
}

static void *
waits(void *arg)
{
    int mark __attribute__((cleanup(clean))) = 0;

    pthread_mutex_lock(&lock);
    pthread_cleanup_push(unlock, &lock);
    for (;;)
        pthread_cond_wait(&cond, &lock);
    pthread_cleanup_pop(1);
    return NULL;
}

int
main(void)
{
    pthread_t t[16];
    void *result;
    int i, before;

    for (i = 0; i < 16; i++) {
        EXPECT(pthread_create(&t[i], NULL, i % 2 ? sorts : waits, NULL) == 0,
               "no thread");
    }
    sleep_ms(50);
    for (i = 0; i < 16; i += 2)
        pthread_cancel(t[i]);
    for (i = 0; i < 16; i++) {
        pthread_join(t[i], &result);
        if (i % 2 == 0)
            EXPECT(result == PTHREAD_CANCELED, "not cancelled");
        else
            EXPECT(result && result != PTHREAD_CANCELED, "not exited");
    }
    EXPECT(pthread_mutex_trylock(&lock) == 0, "the lock was kept");
    EXPECT(n_cleaned >= 16 + 8, "%d cleaned", n_cleaned);
    return host_wrong;
}
