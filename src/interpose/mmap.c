/* SPDX-License-Identifier: MIT */
/*
 * mmap, munmap and mremap, for the heap "mmap": memory without a file that can
 * be touched when it is mapped. While that is off each is a load and a jump.
 *
 * Sources: mmap(2), mremap(2).
 */
#include "collect/heap/heap_maps.h"
#include "collect/runtime/next.h"
#include "collect/signal/heap/heap.h"
#include <cpprof/status.h>

#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef void *
mmap_fn(void *, size_t, int, int, int, off_t);
typedef int
munmap_fn(void *, size_t);
typedef void *
mremap_fn(void *, size_t, size_t, int, ...);

static mmap_fn mmap_first;
static munmap_fn munmap_first;
static mremap_fn mremap_first;

static mmap_fn *real_mmap = mmap_first;
static munmap_fn *real_munmap = munmap_first;
static mremap_fn *real_mremap = mremap_first;

/* Whole pages, as the kernel takes them. */
static size_t
in_pages(size_t n)
{
    size_t page = (size_t)getpagesize();

    return (n + page - 1) & ~(page - 1);
}

/* ---- mmap ------------------------------------------------------------- */

static void *
bare_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
}

static void *
mmap_first(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    mmap_fn *next = (mmap_fn *)cpprof__next_symbol("mmap");

    store_relaxed(&real_mmap, next ? next : bare_mmap);
    return real_mmap(at, n, prot, flags, fd, offset);
}

/* What was there, if the program mapped over it or it went away unseen. */
static void
forget(void *at, size_t n)
{
    sigset_t old;

    if (!load_relaxed(&cpprof__maps_n))
        return;
    cpprof__maps_lock(&old);
    cpprof__maps_remove((uintptr_t)at, n);
    cpprof__maps_unlock(&old);
}

CPPROF__HOOK static void *
mmap_followed(void *want, size_t n, int prot, int flags, int fd, off_t offset)
{
    void *at = load_relaxed(&real_mmap)(want, n, prot, flags, fd, offset);

    if (at == MAP_FAILED)
        return at;
    n = in_pages(n);
    forget(at, n);
    if (!(flags & MAP_ANONYMOUS) || prot == PROT_NONE || !cpprof__heap_due(n))
        return at;
    cpprof__heap_sample_anywhere(at, n,
                                 (uint16_t)load_relaxed(&cpprof__maps_heap));
    cpprof__maps_add((uintptr_t)at, n);
    return at;
}

/* libc's header gives the one the other's name. */
CPPROF_API mmap_fn cpprof__mmap __asm__("mmap");

CPPROF__HOOK void *
cpprof__mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    if (__builtin_expect(load_acquire(&cpprof__maps_heap) != 0, 0))
        return mmap_followed(at, n, prot, flags, fd, offset);
    return load_relaxed(&real_mmap)(at, n, prot, flags, fd, offset);
}

/* The same where off_t has 64 bits. */
_Static_assert(sizeof(off_t) == 8, "mmap64 is mmap");
CPPROF_API mmap_fn cpprof__mmap64 __asm__("mmap64")
    __attribute__((alias("mmap")));

/* ---- munmap ----------------------------------------------------------- */

static int
bare_munmap(void *at, size_t n)
{
    return (int)syscall(SYS_munmap, at, n);
}

static int
munmap_first(void *at, size_t n)
{
    munmap_fn *next = (munmap_fn *)cpprof__next_symbol("munmap");

    store_relaxed(&real_munmap, next ? next : bare_munmap);
    return real_munmap(at, n);
}

static int
munmap_followed(void *at, size_t n)
{
    sigset_t old;
    int result;

    cpprof__maps_lock(&old);
    result = load_relaxed(&real_munmap)(at, n);
    if (!result)
        cpprof__maps_remove((uintptr_t)at, in_pages(n));
    cpprof__maps_unlock(&old);
    return result;
}

CPPROF_API int
munmap(void *at, size_t n)
{
    if (__builtin_expect(load_relaxed(&cpprof__maps_n) != 0, 0))
        return munmap_followed(at, n);
    return load_relaxed(&real_munmap)(at, n);
}

/* ---- mremap ----------------------------------------------------------- */

static void *
bare_mremap(void *at, size_t n, size_t n_now, int flags, ...)
{
    va_list list;
    void *to;

    va_start(list, flags);
    to = va_arg(list, void *);
    va_end(list);
    return (void *)syscall(SYS_mremap, at, n, n_now, flags, to);
}

static void *
mremap_first(void *at, size_t n, size_t n_now, int flags, ...)
{
    mremap_fn *next = (mremap_fn *)cpprof__next_symbol("mremap");
    va_list list;
    void *to;

    va_start(list, flags);
    to = va_arg(list, void *);
    va_end(list);
    store_relaxed(&real_mremap, next ? next : bare_mremap);
    return real_mremap(at, n, n_now, flags, to);
}

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

/* A size of 0 makes a second mapping of shared memory, and the flag leaves the
 * old one: the new one is nobody's then. */
static void *
mremap_followed(void *from, size_t n, size_t n_now, int flags, void *want)
{
    sigset_t old;
    void *to;

    cpprof__maps_lock(&old);
    to = load_relaxed(&real_mremap)(from, n, n_now, flags, want);
    if (to != MAP_FAILED) {
        n = in_pages(n);
        n_now = in_pages(n_now);
        if (n && !(flags & MREMAP_DONTUNMAP))
            cpprof__maps_move((uintptr_t)from, n, (uintptr_t)to, n_now);
        else
            cpprof__maps_remove((uintptr_t)to, n_now);
    }
    cpprof__maps_unlock(&old);
    return to;
}

CPPROF_API void *
mremap(void *at, size_t n, size_t n_now, int flags, ...)
{
    va_list list;
    void *to;

    va_start(list, flags);
    to = va_arg(list, void *);
    va_end(list);
    if (__builtin_expect(load_relaxed(&cpprof__maps_n) != 0, 0))
        return mremap_followed(at, n, n_now, flags, to);
    return load_relaxed(&real_mremap)(at, n, n_now, flags, to);
}
