/* SPDX-License-Identifier: MIT */
/* guest: 2. Children of a bare clone() that have a copy of the process's memory
 * and thread-local storage of their own change their group, each just after
 * its parent has changed its own. */
#include "host.h"
#include <sched.h>

enum { STATUS = 7, CHILDREN = 100, STACK = 65536, BYTES = 8192 };

static char stack[STACK] __attribute__((aligned(64)));
static char storage[BYTES] __attribute__((aligned(64)));

/* What libc has in a thread's storage is not there: nothing may fail. */
__attribute__((no_stack_protector)) static int
change_group(void)
{
    return setgid(getgid()) == 0 && setegid(getgid()) == 0 ? STATUS : 1;
}

__attribute__((no_stack_protector)) static int
child(void *arg)
{
    (void)arg;
    alarm(20); /* it waits for ever */
    return change_group();
}

int
main(void)
{
    EXPECT(change_group() == STATUS, "a call fails"); /* and all are bound */
    for (int i = 0; i < CHILDREN && !host_wrong; i++) {
        pid_t pid;
        int status;

        EXPECT(setgid(getgid()) == 0, "setgid: %s", strerror(errno));
        pid = clone(child, stack + STACK, CLONE_SETTLS | SIGCHLD, NULL, NULL,
                    storage + BYTES / 2);
        status = status_of(pid);
        EXPECT(pid > 0 && status == STATUS, "child %d: it ended with %d", i,
               status);
    }
    return host_wrong;
}
