/* SPDX-License-Identifier: MIT */
/* guest: 4. Never EINTR that the program would not have seen: semaphores. */
#include "host.h"
#include <semaphore.h>

static sem_t never, often;

static void *
poster(void *arg)
{
    for (int i = 0; i < 60; i++) {
        sleep_ms(1);
        sem_post(&often);
    }
    return arg;
}

int
main(void)
{
    pthread_t thread, busy = start_busy(150);

    sem_init(&never, 0, 0);
    sem_init(&often, 0, 0);
    pthread_create(&thread, NULL, poster, NULL);
    for (int i = 0; i < 60; i++)
        EXPECT(sem_wait(&often) == 0, "sem_wait: %s", strerror(errno));
    for (int i = 0; i < 40; i++) {
        struct timespec t;

        clock_gettime(CLOCK_REALTIME, &t);
        t.tv_nsec += 2000000;
        if (t.tv_nsec >= 1000000000)
            t.tv_sec++, t.tv_nsec -= 1000000000;
        EXPECT(sem_timedwait(&never, &t) != 0 && errno == ETIMEDOUT,
               "sem_timedwait: %s", strerror(errno));
    }
    pthread_join(thread, NULL);
    pthread_join(busy, NULL);
    return host_wrong;
}
