/* SPDX-License-Identifier: MIT */
/* guest: 2. The program's children are its children: nobody else to wait
 * for, and no SIGCHLD but theirs. */
#include "host.h"

static volatile sig_atomic_t n;

static void
count(int signal)
{
    (void)signal;
    n++;
}

int
main(void)
{
    pid_t pid;

    signal(SIGCHLD, count);
    busy_ms(60);
    EXPECT(waitpid(-1, NULL, 0) < 0 && errno == ECHILD, "there is a child");
    pid = fork();
    if (pid == 0)
        _exit(0);
    EXPECT(waitpid(-1, NULL, 0) == pid, "another child ended");
    EXPECT(n == 1, "SIGCHLD %d times", (int)n);
    return host_wrong;
}
