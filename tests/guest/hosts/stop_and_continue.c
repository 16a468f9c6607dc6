/* SPDX-License-Identifier: MIT */
/* guest: Stopped and continued, a process goes on. */
#include "host.h"

int
main(void)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        pthread_t busy = start_busy(80);

        pthread_join(busy, NULL);
        exit(9);
    }
    sleep_ms(20);
    kill(pid, SIGSTOP);
    EXPECT(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status),
           "it did not stop");
    kill(pid, SIGCONT);
    EXPECT(status_of(pid) == 9, "it ended otherwise");
    return host_wrong;
}
