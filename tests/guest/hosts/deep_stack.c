/* SPDX-License-Identifier: MIT */
/* guest: A program that uses nearly all of its stack. */
#include "host.h"
#include <sys/resource.h>

static __attribute__((noinline)) int
down(int n)
{
    volatile char room[4096];

    memset((char *)room, n, sizeof room);
    if (n == 0) {
        busy_ms(60);
        return room[0];
    }
    return down(n - 1) + room[1];
}

int
main(void)
{
    struct rlimit limit;

    getrlimit(RLIMIT_STACK, &limit);
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > 8 << 20)
        limit.rlim_cur = 8 << 20;
    down((int)((limit.rlim_cur - (256 << 10)) / 4250));
    return host_wrong;
}
