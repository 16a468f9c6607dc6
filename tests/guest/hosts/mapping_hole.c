/* SPDX-License-Identifier: MIT */
/* guest: 5. A program with one thread knows what it has unmapped: nobody else
 * maps anything there, until it does so itself. */
#include "host.h"
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { PAGE = 4096, N_SIZES = 3, MS = 1300 };

static const size_t sizes[N_SIZES] = {1, 2, 4}; /* pages; libraries have more */
static volatile int sink;

static void *
map(void *at, size_t n, int flags)
{
    return mmap(at, n, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

/* No other hole is above those that are made now, where the kernel looks
 * first. */
static void
fill_holes(void)
{
    char *end = map(NULL, 256 * PAGE, 0);

    for (int i = N_SIZES - 1; i >= 0; i--)
        while (map(NULL, sizes[i] * PAGE, 0) > (void *)end)
            continue;
}

/* Holes between pages that stay. */
static void
make_holes(char **holes)
{
    fill_holes();
    for (int i = 0; i < N_SIZES; i++) {
        size_t n = sizes[i] * PAGE;
        char *p = map(NULL, n + 2 * PAGE, 0);

        EXPECT(p != MAP_FAILED && munmap(p + PAGE, n) == 0, "no hole");
        holes[i] = p + PAGE;
    }
}

/* They are filled for a moment, and empty most of the time. */
static void
use(char **holes, unsigned ms)
{
    uint64_t end = host_ns(CLOCK_MONOTONIC) + ms * 1000000ull;

    while (!host_wrong && host_ns(CLOCK_MONOTONIC) < end) {
        for (unsigned i = 0; i < 200 * host_busy; i++)
            sink += (int)i;
        usleep(2 * (120 - host_busy));
        for (int i = 0; i < N_SIZES; i++) {
            char *p = map(holes[i], sizes[i] * PAGE, MAP_FIXED_NOREPLACE);

            EXPECT(p == holes[i], "the hole of %zu pages is no more: %s",
                   sizes[i], strerror(errno));
            if (p == holes[i])
                munmap(p, sizes[i] * PAGE);
        }
    }
}

int
main(void)
{
    char *holes[N_SIZES];
    pid_t pid;

    make_holes(holes);
    use(holes, MS);
    fflush(stdout);
    pid = fork();
    use(holes, MS);
    fflush(stdout);
    if (pid == 0)
        _exit(host_wrong);
    EXPECT(status_of(pid) == 0, "the child");
    return host_wrong;
}
