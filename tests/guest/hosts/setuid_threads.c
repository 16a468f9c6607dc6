/* SPDX-License-Identifier: MIT */
/* guest: 3. set*id of a program of several threads holds for all of them.
 * needs: root */
#include "host.h"

static volatile int done;

static void *
looks(void *arg)
{
    while (!done)
        busy_ms(1);
    EXPECT(getuid() == 65534 && getgid() == 65534, "a thread has another");
    return arg;
}

int
main(void)
{
    pthread_t thread[3];

    for (int i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, looks, NULL);
    busy_ms(30);
    EXPECT(setgid(65534) == 0, "setgid: %s", strerror(errno));
    EXPECT(setuid(65534) == 0, "setuid: %s", strerror(errno));
    busy_ms(60);
    done = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    return host_wrong;
}
