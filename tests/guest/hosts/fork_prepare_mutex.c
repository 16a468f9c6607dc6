/* SPDX-License-Identifier: MIT */
/* guest: 2. An atfork handler takes a mutex under which another thread makes
 * threads. */
#include "host.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int done;

static void
take(void)
{
    pthread_mutex_lock(&lock);
}

static void
leave(void)
{
    pthread_mutex_unlock(&lock);
}

static void *
makes_threads(void *arg)
{
    while (!done) {
        pthread_t thread;

        pthread_mutex_lock(&lock);
        pthread_create(&thread, NULL, busy_thread, NULL);
        pthread_mutex_unlock(&lock);
        pthread_join(thread, NULL);
    }
    return arg;
}

int
main(void)
{
    pthread_t thread[2];

    pthread_atfork(take, leave, leave);
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, makes_threads, NULL);
    for (int i = 0; i < 60; i++) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(i);
        EXPECT(status_of(pid) == i, "child %d", i);
    }
    done = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    return host_wrong;
}
