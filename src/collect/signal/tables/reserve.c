/* SPDX-License-Identifier: MIT */
#include "collect/signal/tables/reserve.h"

#include "arch/apart.h"
#include "arch/kernel.h"
#include "arch/place.h"
#include "arch/regs.h"

#include <errno.h>
#include <fcntl.h>
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

CPPROF__FIRST_STEP bool
cpprof__has_room_for_stacks(size_t n)
{
    return fits(RLIMIT_DATA, 2, n) && fits(RLIMIT_AS, 2, n);
}

uintptr_t
cpprof__table_place(size_t n)
{
    static uintptr_t next;

    return cpprof__apart(&next, CPPROF__APART_TABLES, n);
}

void *
cpprof__reserve(size_t n)
{
    long p;

    if (!fits(RLIMIT_DATA, 4, n) || !fits(RLIMIT_AS, 2, n))
        return NULL;
    p = cpprof__syscall(SYS_mmap, (long)cpprof__table_place(n), (long)n,
                        PROT_READ | PROT_WRITE,
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

int
cpprof__fill_hole(char *base, size_t at, size_t n, const char *path)
{
    long failed, fd;

    failed = cpprof__syscall(SYS_madvise, (long)(base + at), (long)n,
                             MADV_POPULATE_WRITE, 0, 0, 0);
    if (failed != -EINVAL)
        return (int)-failed;
    fd = cpprof__syscall(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC,
                         0, 0, 0);
    if (fd < 0)
        return (int)-fd;
    failed = cpprof__syscall(SYS_fallocate, fd, 0, (long)at, (long)n, 0, 0);
    cpprof__syscall(SYS_close, fd, 0, 0, 0, 0, 0);
    return (int)-failed;
}

bool
cpprof__is_too_long(uint64_t n)
{
    struct rlimit limit;

    return !cpprof__syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0,
                            0) &&
           limit.rlim_cur < n;
}
