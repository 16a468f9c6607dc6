/* SPDX-License-Identifier: MIT */
/* guest: 4. Never EINTR that the program would not have seen: reads with
 * timeouts. */
#include "host.h"
#include <sys/socket.h>
#include <sys/time.h>

int
main(void)
{
    struct timeval t = {0, 2000};
    pthread_t busy = start_busy(150);
    int ends[2];
    char byte;

    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    for (int i = 0; i < 80; i++)
        EXPECT(read(ends[0], &byte, 1) < 0 && errno == EAGAIN, "read: %s",
               strerror(errno));
    pthread_join(busy, NULL);
    return host_wrong;
}
