/* SPDX-License-Identifier: MIT */
/* guest: 1. clearenv(), environ of its own, and arguments that are written over
 * (as setproctitle() does), then forks and execs: each sees what it was given.
 */
#include "host.h"
#include <sys/prctl.h>

extern char **environ;

int
main(int argc, char **argv)
{
    static char *none[] = {NULL};
    char busy[12], *words[] = {argv[0], busy, NULL};
    int i;

    if (argc > 1) {
        EXPECT(!environ || !environ[0], "there is %s", environ[0]);
        host_busy = (unsigned)atoi(argv[1]);
        busy_ms(20);
        return host_wrong;
    }
    busy_ms(30);
    snprintf(busy, sizeof busy, "%u", host_busy);
    memset(argv[0], 'x', strlen(argv[0]));
    prctl(PR_SET_NAME, "renamed");
    clearenv();
    EXPECT(!getenv("CPPROF") && !getenv("PATH"), "not cleared");
    for (i = 0; i < 20; i++) {
        pid_t pid;

        environ = i % 2 ? none : NULL;
        pid = fork();
        if (pid == 0) {
            execve("/proc/self/exe", words, i % 3 ? none : environ);
            _exit(99);
        }
        EXPECT(status_of(pid) == 0, "a child ended otherwise");
    }
    sleep_ms(1100);
    busy_ms(30);
    EXPECT(!environ || !environ[0], "there is %s", environ[0]);
    return host_wrong;
}
