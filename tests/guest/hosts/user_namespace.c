/* SPDX-License-Identifier: MIT */
/* guest: 3. In user and pid namespaces of its own. needs: root */
#include "host.h"
#include <sched.h>

int
main(void)
{
    pid_t pid;

    busy_ms(30);
    EXPECT(unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC) == 0,
           "unshare: %s", strerror(errno));
    pid = fork();
    if (pid == 0) {
        busy_ms(60);
        EXPECT(getpid() == 1, "pid %d", getpid());
        exit(host_wrong);
    }
    EXPECT(status_of(pid) == 0, "the child ended otherwise");
    return host_wrong;
}
