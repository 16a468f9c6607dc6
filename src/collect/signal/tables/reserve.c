/* SPDX-License-Identifier: MIT */
/*
 * Address space for tables, and whether limits on memory leave room for it: the
 * program has the larger part of each. The limits are read when that is first
 * asked, and when the program sets one (interpose/signals.c).
 */
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

/* As they were when they were read; 0: not yet. */
static uint64_t data_limit CPPROF__AT_START, as_limit CPPROF__AT_START;

static uint64_t
limit_of(int resource)
{
    struct rlimit limit;

    return cpprof__syscall(SYS_prlimit64, 0, resource, 0, (long)&limit, 0, 0)
               ? RLIM_INFINITY
               : limit.rlim_cur;
}

void
cpprof__limits_read(void)
{
    store_relaxed(&data_limit, limit_of(RLIMIT_DATA));
    store_relaxed(&as_limit, limit_of(RLIMIT_AS));
}

static bool
fits(const uint64_t *limit, uint64_t share, size_t n)
{
    if (!load_relaxed(limit))
        cpprof__limits_read();
    return load_relaxed(limit) == RLIM_INFINITY ||
           load_relaxed(&cpprof__reserved_bytes) + n <=
               load_relaxed(limit) / share;
}

CPPROF__FIRST_STEP bool
cpprof__has_room_for_stacks(size_t n)
{
    return fits(&data_limit, 2, n) && fits(&as_limit, 2, n);
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

    if (!fits(&data_limit, 4, n) || !fits(&as_limit, 2, n))
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
