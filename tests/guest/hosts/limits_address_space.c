/* SPDX-License-Identifier: MIT */
/* guest: 3. A program that is at work limits its address space to 200 MB, as
 * vsftpd does in each session, and has room for a buffer. */
#include "host.h"
#include <sys/resource.h>
#include <sys/wait.h>

#define MB (1024ul * 1024)

static void
session(void)
{
    struct rlimit limit = {200 * MB, 200 * MB};
    void *blocks[4];

    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit: %s", strerror(errno));
    for (int i = 0; i < 4; i++) {
        busy_ms(5);
        blocks[i] = malloc(4 * MB);
        EXPECT(blocks[i] != NULL, "no memory for buffer %d", i);
        memset(blocks[i], i, 4 * MB);
    }
    for (int i = 0; i < 4; i++)
        free(blocks[i]);
}

int
main(void)
{
    int status = 0;
    pid_t pid;

    free(malloc(MB));
    busy_ms(20);
    pid = fork();
    if (!pid) {
        session();
        return 0;
    }
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0, "status %d", status);
    session();
    return 0;
}
