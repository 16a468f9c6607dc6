/* SPDX-License-Identifier: MIT */
/* A library to load and unload; built twice under different names. */
#include <stdint.h>
#include <time.h>

uint64_t
PLUGIN_NAME(uint64_t cpu_ns);

static uint64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

__attribute__((visibility("default"), noinline)) uint64_t
PLUGIN_NAME(uint64_t cpu_ns)
{
    uint64_t end = now_ns() + cpu_ns;
    uint64_t x = end | 1;
    int i;

    while (now_ns() < end)
        for (i = 0; i < 40000; i++)
            x = x * 6364136223846793005 + (x >> 33);
    return x;
}
