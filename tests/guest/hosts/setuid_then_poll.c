/* SPDX-License-Identifier: MIT */
/* guest: 3. After a drop of privileges the program runs on unharmed: no EINTR,
 * threads, forks. needs: root */
#include "host.h"
#include <poll.h>

int
main(void)
{
    pthread_t busy;
    pid_t pid;

    busy_ms(30);
    EXPECT(setgid(65534) == 0 && setuid(65534) == 0, "setuid: %s",
           strerror(errno));
    busy = start_busy(120);
    for (int i = 0; i < 80; i++)
        EXPECT(poll(NULL, 0, 2) == 0, "poll: %s", strerror(errno));
    pthread_join(busy, NULL);
    pid = fork();
    if (pid == 0)
        exit(5);
    EXPECT(status_of(pid) == 5, "the child ended otherwise");
    return host_wrong;
}
