/* SPDX-License-Identifier: MIT */
/* guest: 3. Without /proc, in a chroot. needs: root */
#include "host.h"
#include <sys/stat.h>

int
main(void)
{
    char name[] = "empty-XXXXXX";
    pthread_t busy;
    pid_t pid;

    EXPECT(mkdtemp(name) != NULL, "mkdtemp");
    EXPECT(chroot(name) == 0 && chdir("/") == 0, "chroot: %s", strerror(errno));
    busy = start_busy(80);
    for (int i = 0; i < 30; i++) {
        const struct timespec t = {0, 2000000};

        EXPECT(nanosleep(&t, NULL) == 0, "nanosleep: %s", strerror(errno));
    }
    pid = fork();
    if (pid == 0) {
        busy_ms(30);
        exit(3);
    }
    EXPECT(status_of(pid) == 3, "the child ended otherwise");
    pthread_join(busy, NULL);
    return host_wrong;
}
