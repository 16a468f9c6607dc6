/* SPDX-License-Identifier: MIT */
/*
 * mmap, munmap and mremap, for the heap "mmap": memory without a file that can
 * be touched when it is mapped. While that is off each is a load and a jump.
 * And mlockall, which is to lock none of our tables.
 *
 * Sources: mmap(2), mremap(2), mlockall(2).
 */
/* Its header gives the one name the other's. */
#undef _FILE_OFFSET_BITS

#include "interpose/heap.h"

#include "arch/place.h"
#include "collect/heap/heap_maps.h"
#include "collect/signal/heap/heap.h"
#include "collect/signal/tables/reserve.h"
#include "interpose/take_over.h"

#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

/* Whole pages, as the kernel takes them. */
static size_t
in_pages(size_t n)
{
    size_t page = (size_t)getpagesize();

    return (n + page - 1) & ~(page - 1);
}

/* ---- mmap ------------------------------------------------------------- */

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

TAKE_OVER(mmap, void *,
          (void *want, size_t n, int prot, int flags, int fd, off_t offset),
          (want, n, prot, flags, fd, offset))

CPPROF__HOOK static void *
mmap_on(void *want, size_t n, int prot, int flags, int fd, off_t offset)
{
    void *at;

    NEEDS_STORAGE(mmap, (want, n, prot, flags, fd, offset));
    at = cpprof__real(mmap)(want, n, prot, flags, fd, offset);
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

_Static_assert(sizeof(off_t) == 8, "mmap64 is mmap");
TAKE_OVER(mmap64, void *,
          (void *want, size_t n, int prot, int flags, int fd, off_t offset),
          (want, n, prot, flags, fd, offset))

CPPROF__HOOK static void *
mmap64_on(void *want, size_t n, int prot, int flags, int fd, off_t offset)
{
    return mmap_on(want, n, prot, flags, fd, offset);
}

/* ---- munmap ----------------------------------------------------------- */

TAKE_OVER(munmap, int, (void *at, size_t n), (at, n))

static int
munmap_on(void *at, size_t n)
{
    sigset_t old;
    int result;

    NEEDS_STORAGE(munmap, (at, n));
    if (!load_relaxed(&cpprof__maps_n))
        return cpprof__real(munmap)(at, n);
    cpprof__maps_lock(&old);
    result = cpprof__real(munmap)(at, n);
    if (!result)
        cpprof__maps_remove((uintptr_t)at, in_pages(n));
    cpprof__maps_unlock(&old);
    return result;
}

/* ---- mremap ----------------------------------------------------------- */

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
    to = cpprof__real(mremap)(from, n, n_now, flags, want);
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

HOOK(mremap, NULL)

CPPROF_API void *
mremap(void *at, size_t n, size_t n_now, int flags, ...)
{
    va_list list;
    void *to;

    va_start(list, flags);
    to = va_arg(list, void *);
    va_end(list);
    return ENTRY(mremap)(at, n, n_now, flags, to);
}

static void *
mremap_on(void *at, size_t n, size_t n_now, int flags, ...)
{
    va_list list;
    void *to;

    va_start(list, flags);
    to = va_arg(list, void *);
    va_end(list);
    NEEDS_STORAGE(mremap, (at, n, n_now, flags, to));
    if (!load_relaxed(&cpprof__maps_n))
        return cpprof__real(mremap)(at, n, n_now, flags, to);
    return mremap_followed(at, n, n_now, flags, to);
}

/* For good: what is followed stays so. */
CPPROF__FIRST_STEP static void
follow(void)
{
    cpprof__switch_group(CPPROF__MAPS, true);
}

CPPROF__FIRST_STEP void
cpprof__maps_start(void)
{
    store_release(&cpprof__maps_changed, follow);
}

/* ---- mlockall --------------------------------------------------------- */

TAKE_OVER(mlockall, int, (int flags), (flags))

static int
mlockall_on(int flags)
{
    if (flags & MCL_FUTURE)
        cpprof__maps_are_locked(true);
    return cpprof__real(mlockall)(flags);
}
