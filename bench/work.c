/* SPDX-License-Identifier: MIT */
/*
 * A CPU-bound program with stacks of 30 frames: work.c [SECONDS-SCALE].
 * Prints the CPU time of the process in seconds.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define DEPTH 26 /* and main, run and what libc puts below */

static volatile uint64_t sink;

/* Frames of several sizes, and some work on each of them, so that samples land
 * at different depths. */
__attribute__((noinline)) static uint64_t
descend(int depth, uint64_t x)
{
    char room[16 + depth % 5 * 16];
    int i;

    room[depth % 16] = (char)x;
    for (i = 0; i < 40; i++)
        x = x * 6364136223846793005u + (uint64_t)room[depth % 16];
    if (depth < DEPTH)
        x = descend(depth + 1, x);
    else
        for (i = 0; i < 2000; i++)
            x = x * 6364136223846793005u + 1442695040888963407u;
    return x ^ (uint64_t)room[depth % 16];
}

__attribute__((noinline)) static void
run(long n)
{
    while (n--)
        sink += descend(0, (uint64_t)n);
}

int
main(int argc, char **argv)
{
    double scale = argc > 1 ? atof(argv[1]) : 1;
    struct timespec t;

    run((long)(scale * 200000));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    printf("%.6f\n", (double)t.tv_sec + (double)t.tv_nsec / 1e9);
    return 0;
}
