/* SPDX-License-Identifier: MIT */
/* guest: 2. Threads by the thousand, joined and detached, with names, stacks
 * and results of their own. */
#include "host.h"
#include <semaphore.h>

static sem_t ended;

static void *
works(void *arg)
{
    sem_post(&ended);
    return arg;
}

int
main(void)
{
    pthread_attr_t detached;
    pthread_t thread;
    void *result;

    sem_init(&ended, 0, 0);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (intptr_t i = 0; i < 600; i++) {
        EXPECT(pthread_create(&thread, i % 2 ? &detached : NULL, works,
                              (void *)i) == 0,
               "pthread_create %d", (int)i);
        if (i % 2 == 0) {
            EXPECT(pthread_join(thread, &result) == 0, "join");
            EXPECT(result == (void *)i, "another result");
        }
    }
    for (int i = 0; i < 600; i++)
        sem_wait(&ended);
    return host_wrong;
}
