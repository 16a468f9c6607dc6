/* SPDX-License-Identifier: MIT */
/*
 * Address space for tables, and whether limits on memory leave room for it: the
 * program has the larger part of each. They and the limit on files are read
 * when that is first asked, and when the program sets one
 * (interpose/signals.c).
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

/* The kernel locks what is mapped, and so fills it. */
static bool are_locked CPPROF__AT_START;

/* As they were when they were read. A program may set one to 0, so that is no
 * word for what was not. */
static uint64_t data_limit CPPROF__AT_START, as_limit CPPROF__AT_START,
    file_limit CPPROF__AT_START;
static bool are_read CPPROF__AT_START;

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
    store_relaxed(&file_limit, limit_of(RLIMIT_FSIZE));
    store_release(&are_read, true);
}

/* One of them; after a filter has come, that of before. */
static uint64_t
limit_read(const uint64_t *limit)
{
    if (!load_acquire(&are_read))
        cpprof__limits_read();
    return load_relaxed(limit);
}

static bool
fits(const uint64_t *limit, uint64_t share, size_t n)
{
    uint64_t most = limit_read(limit);

    return most == RLIM_INFINITY ||
           load_relaxed(&cpprof__reserved_bytes) + n <= most / share;
}

const char *
cpprof__reserve_limit(void)
{
    if (limit_read(&data_limit) != RLIM_INFINITY)
        return "a quarter of ulimit -d is too little for tables";
    if (limit_read(&as_limit) != RLIM_INFINITY)
        return "half of ulimit -v is too little for tables";
    return NULL;
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

void
cpprof__maps_are_locked(bool locked)
{
    store_relaxed(&are_locked, locked);
}

static bool
is_errno(long result)
{
    return result < 0 && result > -4096;
}

/* Not before it is unlocked may it be read: the kernel fills nothing that
 * cannot be. */
long
cpprof__map(uintptr_t at, size_t n, int protection, int flags, long fd,
            size_t offset)
{
    bool locked = load_relaxed(&are_locked) && protection;
    long p = cpprof__syscall(SYS_mmap, (long)at, (long)n,
                             locked ? PROT_NONE : protection, flags, fd,
                             (long)offset);
    long failed;

    if (!locked || is_errno(p))
        return p;
    cpprof__syscall(SYS_munlock, p, (long)n, 0, 0, 0, 0);
    failed = cpprof__syscall(SYS_mprotect, p, (long)n, protection, 0, 0, 0);
    if (!failed)
        return p;
    cpprof__syscall(SYS_munmap, p, (long)n, 0, 0, 0, 0);
    return failed;
}

bool
cpprof__empty(void *p, size_t n)
{
    if (!cpprof__syscall(SYS_madvise, (long)p, (long)n, MADV_DONTNEED, 0, 0, 0))
        return true;
    cpprof__syscall(SYS_munlock, (long)p, (long)n, 0, 0, 0, 0);
    return !cpprof__syscall(SYS_madvise, (long)p, (long)n, MADV_DONTNEED, 0, 0,
                            0);
}

/* Zeros at that address, or where the kernel will; 0: none. */
static uintptr_t
map(uintptr_t at, size_t n)
{
    long p = cpprof__map(at, n, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (is_errno(p))
        return 0;
    cpprof__syscall(SYS_madvise, p, (long)n, MADV_NOHUGEPAGE, 0, 0, 0);
    return (uintptr_t)p;
}

static void
unmap(uintptr_t at, size_t n)
{
    if (n)
        cpprof__syscall(SYS_munmap, (long)at, (long)n, 0, 0, 0, 0);
}

static bool
have_room(size_t n)
{
    return fits(&data_limit, 4, n) && fits(&as_limit, 2, n);
}

void *
cpprof__reserve(size_t n)
{
    uintptr_t p = have_room(n) ? map(cpprof__table_place(n), n) : 0;

    if (p)
        add_relaxed(&cpprof__reserved_bytes, n);
    return (void *)p;
}

void
cpprof__unreserve(void *p, size_t n)
{
    unmap((uintptr_t)p, n);
    add_relaxed(&cpprof__reserved_bytes, -n);
}

/* By a wish, as everywhere: a filter may know the kernel's flags for a fixed
 * place as little as an old kernel does. */
static bool
map_there(uintptr_t at, size_t n)
{
    uintptr_t p = map(at, n);

    if (p && p != at)
        unmap(p, n);
    return p == at;
}

static void
unmap_pieces(uintptr_t base, const struct cpprof__piece *pieces, unsigned n)
{
    while (n-- > 0)
        unmap(base + pieces[n].start, pieces[n].end - pieces[n].start);
}

static bool
map_pieces(uintptr_t base, const struct cpprof__piece *pieces, unsigned n)
{
    unsigned i;

    for (i = 0; i < n; i++)
        if (!map_there(base + pieces[i].start,
                       pieces[i].end - pieces[i].start)) {
            unmap_pieces(base, pieces, i);
            return false;
        }
    return true;
}

static void
unmap_between(uintptr_t base, size_t n, const struct cpprof__piece *pieces,
              unsigned n_pieces)
{
    size_t at = 0;
    unsigned i;

    for (i = 0; i < n_pieces; i++) {
        unmap(base + at, pieces[i].start - at);
        at = pieces[i].end;
    }
    unmap(base + at, n - at);
}

static size_t
length_of(const struct cpprof__piece *pieces, unsigned n)
{
    size_t sum = 0;

    while (n-- > 0)
        sum += pieces[n].end - pieces[n].start;
    return sum;
}

void *
cpprof__reserve_pieces(size_t n, const struct cpprof__piece *pieces,
                       unsigned n_pieces)
{
    size_t sum = length_of(pieces, n_pieces);
    uintptr_t base = have_room(sum) ? cpprof__table_place(n) : 0;

    if (!base || !map_pieces(base, pieces, n_pieces)) {
        base = have_room(n) ? map(0, n) : 0;
        if (base)
            unmap_between(base, n, pieces, n_pieces);
    }
    if (base)
        add_relaxed(&cpprof__reserved_bytes, sum);
    return (void *)base;
}

bool
cpprof__reserve_more(void *base, const struct cpprof__piece *pieces,
                     unsigned n_pieces)
{
    size_t sum = length_of(pieces, n_pieces);

    if (!have_room(sum) || !map_pieces((uintptr_t)base, pieces, n_pieces))
        return false;
    add_relaxed(&cpprof__reserved_bytes, sum);
    return true;
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
    return limit_read(&file_limit) < n;
}
