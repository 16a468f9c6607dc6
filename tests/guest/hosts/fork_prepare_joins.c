/* SPDX-License-Identifier: MIT */
/* guest: 2. No lock of ours is held while atfork handlers run: one that joins
 * a worker thread. */
#include "host.h"

static pthread_t worker;
static int end[2];

static void *
work(void *arg)
{
    char byte;

    (void)!read(end[0], &byte, 1);
    free(malloc(100000));
    return arg;
}

static void
prepare(void)
{
    pthread_t another;

    (void)!write(end[1], "x", 1);
    pthread_join(worker, NULL);
    pthread_create(&another, NULL, busy_thread, NULL);
    pthread_join(another, NULL);
}

int
main(void)
{
    pid_t pid;

    EXPECT(pipe(end) == 0, "pipe");
    pthread_create(&worker, NULL, work, NULL);
    pthread_atfork(prepare, NULL, NULL);
    pid = fork();
    if (pid == 0)
        _exit(7);
    EXPECT(status_of(pid) == 7, "the child ended otherwise");
    return host_wrong;
}
