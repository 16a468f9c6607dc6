/* SPDX-License-Identifier: MIT */
/* guest: errno is what the program's calls left, whatever interrupts. */
#include "host.h"

int
main(void)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    for (int i = 0; i < 200; i++) {
        void *block;

        errno = 77;
        block = malloc(100000);
        EXPECT(errno == 77, "after malloc it is %d", errno);
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        EXPECT(errno == 77, "after a lock it is %d", errno);
        free(block);
        EXPECT(errno == 77, "after free it is %d", errno);
        busy_ms(1);
        EXPECT(errno == 77, "after work it is %d", errno);
    }
    return host_wrong;
}
