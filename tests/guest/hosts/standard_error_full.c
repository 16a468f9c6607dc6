/* SPDX-License-Identifier: MIT */
/* guest: 2. A program whose standard error is a pipe that is full and that
 * nobody reads ends as soon as alone, though profiles cannot be written and
 * somebody should be told. */
#include "host.h"
#include <fcntl.h>
#include <sys/stat.h>

#define MOST_S 20 /* with 1.4 s of its own */

static void
live(void)
{
    alarm(MOST_S);
    sleep_ms(1300); /* what ends sooner leaves no profile */
    busy_ms(60);
    EXPECT(rename("../gone", "../away") == 0, "it stays");
    exit(host_wrong);
}

static void
fill(int pipe_end)
{
    char bytes[4096] = {0};

    fcntl(pipe_end, F_SETFL, O_NONBLOCK);
    while (write(pipe_end, bytes, sizeof bytes) > 0)
        continue;
    EXPECT(errno == EAGAIN, "it is not full: %s", strerror(errno));
    fcntl(pipe_end, F_SETFL, 0);
}

int
main(int argc, char **argv)
{
    int ends[2], status;
    pid_t pid;

    if (argc > 1)
        live();
    EXPECT(pipe(ends) == 0, "no pipe: %s", strerror(errno));
    fill(ends[1]);
    pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        if (mkdir("gone", 0700) || chdir("gone"))
            _exit(98);
        execl("/proc/self/exe", argv[0], "live", NULL);
        _exit(99);
    }
    status = status_of(pid);
    EXPECT(status == 0, "it ended with %d", status);
    return host_wrong;
}
