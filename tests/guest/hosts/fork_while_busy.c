/* SPDX-License-Identifier: MIT */
/* guest: 2. Forks while other threads allocate, lock and come and go. */
#include "host.h"

static volatile int done;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *
churn(void *arg)
{
    while (!done) {
        pthread_t thread;

        free(malloc(30000));
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        if (arg && pthread_create(&thread, NULL, busy_thread, NULL) == 0)
            pthread_join(thread, NULL);
    }
    return NULL;
}

int
main(void)
{
    pthread_t thread[3];

    for (intptr_t i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, churn, (void *)i);
    for (int i = 0; i < 80; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            free(malloc(10000));
            exit(i);
        }
        EXPECT(status_of(pid) == i, "child %d", i);
    }
    done = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    return host_wrong;
}
