/* SPDX-License-Identifier: MIT */
/* guest: 2. What the program does at its end is done: handlers of exit that
 * allocate, start threads and fork. */
#include "host.h"

static void
last(void)
{
    pthread_t thread = start_busy(10);
    pid_t pid = fork();

    if (pid == 0)
        _exit(4);
    EXPECT(status_of(pid) == 4, "the child ended otherwise");
    pthread_join(thread, NULL);
    free(malloc(1 << 20));
    puts("last");
}

static void __attribute__((destructor)) very_last(void)
{
    puts("very last");
}

int
main(void)
{
    atexit(last);
    busy_ms(30);
    return host_wrong;
}
