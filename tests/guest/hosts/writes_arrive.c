/* SPDX-License-Identifier: MIT */
/* guest: 5. write() to a descriptor just opened never fails. */
#include "host.h"
#include <fcntl.h>

static void *
writes(void *arg)
{
    for (int i = 0; i < 6000; i++) {
        int fd = open("/dev/null", O_WRONLY);

        EXPECT(fd >= 0, "open: %s", strerror(errno));
        EXPECT(write(fd, "x", 1) == 1, "write: %s", strerror(errno));
        EXPECT(close(fd) == 0, "close: %s", strerror(errno));
    }
    return arg;
}

int
main(void)
{
    pthread_t thread[3];

    for (int i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, writes, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    return host_wrong;
}
