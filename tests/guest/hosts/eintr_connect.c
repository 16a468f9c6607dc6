/* SPDX-License-Identifier: MIT */
/* guest: 4. Never EINTR that the program would not have seen: connects that
 * wait, and accepts. */
#include "host.h"
#include <sys/socket.h>
#include <sys/un.h>

static int listening;

static void *
accepter(void *arg)
{
    for (int i = 0; i < 40; i++) {
        int one;

        sleep_ms(3);
        one = accept(listening, NULL, NULL);
        EXPECT(one >= 0, "accept: %s", strerror(errno));
        close(one);
    }
    return arg;
}

int
main(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    pthread_t thread, busy = start_busy(150);

    snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "host-%d", getpid());
    listening = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT(bind(listening, (void *)&name, sizeof name) == 0, "bind");
    EXPECT(listen(listening, 0) == 0, "listen");
    pthread_create(&thread, NULL, accepter, NULL);
    for (int i = 0; i < 40; i++) {
        int one = socket(AF_UNIX, SOCK_STREAM, 0);

        EXPECT(connect(one, (void *)&name, sizeof name) == 0, "connect: %s",
               strerror(errno));
        close(one);
    }
    pthread_join(thread, NULL);
    pthread_join(busy, NULL);
    return host_wrong;
}
