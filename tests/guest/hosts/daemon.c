/* SPDX-License-Identifier: MIT */
/* guest: 2. A daemon: two forks, setsid, everything closed. */
#include "host.h"

int
main(void)
{
    int ends[2];
    char byte = 0;
    pid_t pid;

    EXPECT(pipe(ends) == 0, "pipe");
    pid = fork();
    if (pid == 0) {
        EXPECT(setsid() > 0, "setsid");
        if (fork() != 0)
            _exit(0);
        (void)!chdir("/");
        for (int fd = 0; fd < 1024; fd++)
            if (fd != ends[1])
                close(fd);
        busy_ms(50);
        (void)!write(ends[1], "d", 1);
        _exit(0);
    }
    EXPECT(status_of(pid) == 0, "the middle ended otherwise");
    close(ends[1]);
    EXPECT(read(ends[0], &byte, 1) == 1 && byte == 'd', "no word of it");
    return host_wrong;
}
