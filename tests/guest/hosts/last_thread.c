/* SPDX-License-Identifier: MIT */
/* guest: 5. The program's last thread ends: exit handlers find the descriptors
 * that the program has opened. */
#include "host.h"
#include <fcntl.h>

static int mine;

static void
on_exit_(void)
{
    if (write(mine, "handler\n", 8) != 8)
        _exit(17);
}

static void *
last(void *arg)
{
    uint64_t end = host_ns(CLOCK_MONOTONIC) + 1200000000u;

    /* Long enough for the main thread to be gone. */
    while (host_ns(CLOCK_MONOTONIC) < end) {
        busy_ms(5);
        sleep_ms(15);
    }
    busy_ms(100);
    return arg;
}

int
main(void)
{
    pthread_t thread;

    mine = dup(1);
    atexit(on_exit_);
    pthread_create(&thread, NULL, last, NULL);
    pthread_exit(NULL);
}
