/* SPDX-License-Identifier: MIT */
/* guest: 3. The first process of a namespace of processes: it reaps whom it is
 * given, its signals come as the kernel has them for such a one, and it ends.
 * needs: root */
#include "host.h"
#include <sched.h>
#include <sys/mount.h>

static int
init(void)
{
    int i, n_reaped = 0;
    pid_t pid;

    EXPECT(getpid() == 1, "it is %d", (int)getpid());
    kill(1, SIGTERM); /* without a handler nothing comes */
    for (i = 0; i < 20; i++)
        if (fork() == 0) {
            if (fork() == 0) {
                sleep_ms(5);
                _exit(0); /* an orphan */
            }
            _exit(0);
        }
    busy_ms(60);
    while ((pid = waitpid(-1, NULL, 0)) > 0)
        n_reaped++;
    EXPECT(n_reaped == 40, "%d reaped", n_reaped);
    sleep_ms(1100);
    busy_ms(60);
    return host_wrong;
}

int
main(void)
{
    pid_t pid;

    busy_ms(30);
    if (unshare(CLONE_NEWPID)) {
        puts("no namespace");
        return 0;
    }
    pid = fork();
    if (pid == 0)
        exit(init());
    EXPECT(status_of(pid) == 0, "it ended otherwise");
    return host_wrong;
}
