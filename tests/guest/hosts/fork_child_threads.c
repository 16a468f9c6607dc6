/* SPDX-License-Identifier: MIT */
/* guest: 2. A child of a process with threads goes on with threads and memory
 * of its own, and so does its child. */
#include "host.h"

static int
live(int depth)
{
    pthread_t a = start_busy(30), b = start_busy(30);
    void *block = malloc(1 << 20);

    memset(block, 1, 1 << 20);
    if (depth > 0) {
        pid_t pid = fork();

        if (pid == 0)
            exit(live(depth - 1));
        EXPECT(status_of(pid) == depth - 1, "depth %d", depth);
    }
    free(block);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return depth;
}

int
main(void)
{
    live(3);
    return host_wrong;
}
