/* SPDX-License-Identifier: MIT */
/* guest: Stopped and continued, a process goes on. */
#include "host.h"

int
main(void)
{
    int ends[2], failed = pipe(ends), status;
    pid_t pid = fork();

    EXPECT(!failed, "pipe: %s", strerror(errno));
    if (pid == 0) {
        pthread_t busy = start_busy(80);
        char none;

        close(ends[1]);
        pthread_join(busy, NULL);
        failed = read(ends[0], &none, 1) != 0; /* not before it was stopped */
        exit(failed ? 8 : 9);
    }
    close(ends[0]);
    sleep_ms(20);
    kill(pid, SIGSTOP);
    EXPECT(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status),
           "it did not stop");
    kill(pid, SIGCONT);
    close(ends[1]);
    EXPECT(status_of(pid) == 9, "it ended otherwise");
    return host_wrong;
}
