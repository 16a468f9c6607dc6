/* SPDX-License-Identifier: MIT */
/* guest: 5. A program that reserves tens of TB at an address of its choice, as
 * sanitizers and collectors of garbage do, finds it free when the kernel has
 * put nothing there. */
#include "host.h"
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define TB ((size_t)1 << 40)

static void
reserve(size_t at, size_t n)
{
    void *p =
        mmap((void *)(at * TB), n * TB, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
             -1, 0);

    EXPECT(p == (void *)(at * TB), "%zu TB at %zu: %s", n, at, strerror(errno));
    if (p != MAP_FAILED)
        munmap(p, n * TB);
}

int
main(void)
{
    pthread_t busy;

    busy_ms(20);
    busy = start_busy(100);
    sleep_ms(300);
    reserve(112, 13);
    reserve(93, 32);
    pthread_join(busy, NULL);
    return host_wrong;
}
