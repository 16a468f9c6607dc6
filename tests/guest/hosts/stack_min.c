/* SPDX-License-Identifier: MIT */
/* guest: 4. Threads with the smallest stack that there is run on. */
#include "host.h"
#include <limits.h>

int
main(void)
{
    pthread_attr_t small;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small,
                              (size_t)sysconf(_SC_THREAD_STACK_MIN) + 16384);
    for (int i = 0; i < 8; i++) {
        pthread_t thread;

        EXPECT(pthread_create(&thread, &small, busy_thread, (void *)30) == 0,
               "pthread_create");
        pthread_join(thread, NULL);
    }
    return host_wrong;
}
