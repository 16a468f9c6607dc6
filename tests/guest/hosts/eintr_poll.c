/* SPDX-License-Identifier: MIT */
/* guest: 4. Never EINTR that the program would not have seen: poll, select,
 * epoll_wait. */
#include "host.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

int
main(void)
{
    pthread_t busy = start_busy(150);
    int ends[2], set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};

    EXPECT(pipe(ends) == 0, "pipe: %s", strerror(errno));
    EXPECT(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event) == 0, "epoll_ctl");
    for (int i = 0; i < 60; i++) {
        struct pollfd one = {.fd = ends[0], .events = POLLIN};
        struct timeval t = {0, 1500};
        fd_set fds;

        FD_ZERO(&fds);
        FD_SET(ends[0], &fds);
        EXPECT(poll(&one, 1, 2) == 0, "poll: %s", strerror(errno));
        EXPECT(select(ends[0] + 1, &fds, NULL, NULL, &t) == 0, "select: %s",
               strerror(errno));
        EXPECT(epoll_wait(set, &event, 1, 2) == 0, "epoll_wait: %s",
               strerror(errno));
    }
    pthread_join(busy, NULL);
    return host_wrong;
}
