/* SPDX-License-Identifier: MIT */
#include "collect/signal/tables/reserve.h"

#include "arch/regs.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

uint64_t cpprof__reserved_bytes;

static bool
fits(int resource, uint64_t share, size_t n)
{
    struct rlimit limit;

    return cpprof__syscall(SYS_prlimit64, 0, resource, 0, (long)&limit, 0, 0) ||
           limit.rlim_cur == RLIM_INFINITY ||
           load_relaxed(&cpprof__reserved_bytes) + n <= limit.rlim_cur / share;
}

void *
cpprof__reserve(size_t n)
{
    long p;

    if (!fits(RLIMIT_DATA, 4, n) || !fits(RLIMIT_AS, 2, n))
        return NULL;
    p = cpprof__syscall(SYS_mmap, 0, (long)n, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p < 0 && p > -4096)
        return NULL;
    cpprof__syscall(SYS_madvise, p, (long)n, MADV_NOHUGEPAGE, 0, 0, 0);
    add_relaxed(&cpprof__reserved_bytes, n);
    return (void *)p;
}

void
cpprof__unreserve(void *p, size_t n)
{
    cpprof__syscall(SYS_munmap, (long)p, (long)n, 0, 0, 0, 0);
    add_relaxed(&cpprof__reserved_bytes, -n);
}
