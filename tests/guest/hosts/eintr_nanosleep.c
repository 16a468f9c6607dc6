/* SPDX-License-Identifier: MIT */
/* guest: 4. Never EINTR that the program would not have seen: sleeps. */
#include "host.h"

static void *
sleeps(void *arg)
{
    struct timespec t = {0, 1000000};

    for (int i = 0; i < 100; i++)
        EXPECT(nanosleep(&t, NULL) == 0, "nanosleep: %s", strerror(errno));
    return arg;
}

int
main(void)
{
    pthread_t thread[4], busy = start_busy(100);

    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, sleeps, NULL);
    sleeps(NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    pthread_join(busy, NULL);
    return host_wrong;
}
