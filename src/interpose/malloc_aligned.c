/* SPDX-License-Identifier: MIT */
/* Blocks with an alignment that is asked for. Source: posix_memalign(3). */
#include "interpose/allocator.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#if INTERPOSE_ALLOCATOR

/* An allocator without a name, of which the program knows: as when there is no
 * memory. */
static void *
no_aligned(size_t alignment, size_t n)
{
    errno = ENOMEM;
    return NULL;
}

static void *
no_pages(size_t n)
{
    return no_aligned(0, n);
}

/* What pvalloc returns: whole pages; nothing when that is more than can be. */
static size_t
whole_pages(size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return n > SIZE_MAX - page ? 0 : (n + page - 1) & ~(page - 1);
}

ALLOCATOR(memalign, "memalign", (size_t alignment, size_t n), (alignment, n), n,
          no_aligned)

ALLOCATOR(aligned_alloc, "aligned_alloc", (size_t alignment, size_t n),
          (alignment, n), n, no_aligned)

ALLOCATOR(valloc, "valloc", (size_t n), (n), n, no_pages)

ALLOCATOR(pvalloc, "pvalloc", (size_t n), (n), whole_pages(n), no_pages)

/* ---- posix_memalign: as the others, but for how it returns ------------- */

typedef int
posix_memalign_fn(void **, size_t, size_t);

static posix_memalign_fn posix_memalign_first;
static posix_memalign_fn *posix_memalign_next;
static posix_memalign_fn *posix_memalign_entry = posix_memalign_first;

CPPROF_API CPPROF__HOOK int
posix_memalign(void **address, size_t alignment, size_t n)
{
    return load_relaxed(&posix_memalign_entry)(address, alignment, n);
}

CPPROF__HOOK static int
posix_memalign_sampled(void **address, size_t alignment, size_t n)
{
    int failed;

    uncount(n);
    failed = load_relaxed(&posix_memalign_next)(address, alignment, n);
    if (!failed)
        sample(*address, n);
    return failed;
}

CPPROF__HOOK static int
posix_memalign_counted(void **address, size_t alignment, size_t n)
{
    if (cpprof__heap_due(n))
        return posix_memalign_sampled(address, alignment, n);
    return load_relaxed(&posix_memalign_next)(address, alignment, n);
}

static int
no_posix_memalign(void **address, size_t alignment, size_t n)
{
    return ENOMEM;
}

CPPROF__HOOK static int
posix_memalign_first(void **address, size_t alignment, size_t n)
{
    posix_memalign_fn *next = load_relaxed(&posix_memalign_next);
    struct probe probe;
    bool is_counted;
    int failed;

    if (!next)
        next = (posix_memalign_fn *)cpprof__next_symbol("posix_memalign");
    if (!next)
        next = no_posix_memalign;
    store_relaxed(&posix_memalign_next, next);
    if (!read_switch(&cpprof__allocator_counts))
        return next(address, alignment, n);
    probe = probe_begin();
    failed = next(address, alignment, n);
    is_counted = probe_end(&probe) || cpprof__allocator_stands_back;
    if (failed)
        return failed;
    store_release(&posix_memalign_entry,
                  is_counted ? next : posix_memalign_counted);
    if (!probe.is_inner && !cpprof__allocator_stands_back &&
        cpprof__heap_due(n))
        cpprof__heap_sample(*address, n, 0);
    return 0;
}

#define EACH(X)                                                                \
    X(memalign)                                                                \
    X(aligned_alloc)                                                           \
    X(valloc)                                                                  \
    X(pvalloc)

void
cpprof__malloc_aligned_switch(void)
{
    set_entry(&posix_memalign_entry, posix_memalign_first);
    EACH(SWITCH)
}

void
cpprof__malloc_aligned_find(void)
{
    EACH(FORGET)
    store_release(&posix_memalign_entry, posix_memalign_first);
    store_release(&posix_memalign_next,
                  (posix_memalign_fn *)cpprof__next_symbol("posix_memalign"));
}

#endif
