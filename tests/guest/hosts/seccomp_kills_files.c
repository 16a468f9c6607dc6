/* SPDX-License-Identifier: MIT */
/* guest: 3. Children forbid themselves threads and files, on pain of death,
 * rest for a moment, and end by _exit(). */
#include "filter.h"

static void
child(void)
{
    struct sock_filter lines[] = {
        FILTER_BEGIN,
        FILTER_CASE(SYS_clone, SECCOMP_RET_KILL_PROCESS),
        FILTER_CASE(SYS_clone3, SECCOMP_RET_KILL_PROCESS),
        FILTER_CASE(SYS_openat, SECCOMP_RET_KILL_PROCESS),
        FILTER_END(SECCOMP_RET_ALLOW),
    };

    FILTER_SET(lines, 0);
    sleep_ms(60);
    _exit(3);
}

int
main(void)
{
    unsigned i;
    int status;
    pid_t pid;

    alarm(60);
    for (i = 0; i < 16; i++) {
        pid = fork();
        if (!pid)
            child();
        status = status_of(pid);
        EXPECT(status == 3, "child %u: %d", i, status);
    }
    return host_wrong;
}
