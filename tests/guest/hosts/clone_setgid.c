/* SPDX-License-Identifier: MIT */
/* guest: 2. Children of the bare system call clone(), one after the other from
 * the first moment of main() on, change their group. */
#include "host.h"
#include <grp.h>
#include <sys/syscall.h>

enum { STATUS = 7, CHILDREN = 150 };

int
main(void)
{
    int i, status;
    pid_t pid;

    for (i = 0; i < CHILDREN && !host_wrong; i++) {
        pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (pid == 0) {
            alarm(20); /* it waits for ever */
            EXPECT(setgid(getgid()) == 0, "setgid: %s", strerror(errno));
            EXPECT(setegid(getgid()) == 0, "setegid: %s", strerror(errno));
            if (i % 20 == 3 && getuid() == 0)
                EXPECT(initgroups("root", getgid()) == 0, "initgroups: %s",
                       strerror(errno));
            syscall(SYS_exit_group, host_wrong ? host_wrong : STATUS);
        }
        status = status_of(pid);
        EXPECT(status == STATUS, "child %d: it ended with %d", i, status);
        if (i % 10 == 0)
            busy_ms(5);
    }
    return host_wrong;
}
