/* SPDX-License-Identifier: MIT */
/* guest: 2. Cancelled in a wait, a thread has its mutex again. */
#include "host.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static void
unlock(void *arg)
{
    EXPECT(pthread_mutex_trylock(&lock) == EBUSY, "it is not locked");
    pthread_mutex_unlock(arg);
}

static void *
waits(void *arg)
{
    pthread_mutex_lock(&lock);
    pthread_cleanup_push(unlock, &lock);
    for (;;)
        pthread_cond_wait(&cond, &lock);
    pthread_cleanup_pop(1);
    return arg;
}

int
main(void)
{
    for (int i = 0; i < 30; i++) {
        pthread_t thread;
        void *result;

        pthread_create(&thread, NULL, waits, NULL);
        sleep_ms(2);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        EXPECT(result == PTHREAD_CANCELED, "it was not cancelled");
        EXPECT(pthread_mutex_lock(&lock) == 0, "the mutex is lost");
        pthread_mutex_unlock(&lock);
    }
    return host_wrong;
}
