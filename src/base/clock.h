/* SPDX-License-Identifier: MIT */
/* Clocks, in nanoseconds. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/*
 * By the program's clock_gettime(), which costs no system call for most clocks
 * but may be another's that allocates or locks: where that must not be there
 * is cpprof__clock_ns(). 0 for a clock that there is not.
 */
static inline uint64_t
cpprof__now_ns(clockid_t clock)
{
    struct timespec t = {0, 0};

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
