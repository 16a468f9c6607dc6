/* SPDX-License-Identifier: MIT */
/* Blocks with an alignment that is asked for. Source: posix_memalign(3). */
#include "interpose/allocator.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#if INTERPOSE_ALLOCATOR

/* libc's own, for a program that is linked statically. */
extern void *__libc_memalign(size_t, size_t) __attribute__((weak));

static void *
by_memalign(size_t alignment, size_t n)
{
    return __libc_memalign(alignment, n);
}

static size_t
page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void *
page_aligned(size_t n)
{
    return __libc_memalign(page_size(), n);
}

/* What pvalloc returns: whole pages; nothing when that is more than can be. */
static size_t
whole_pages(size_t n)
{
    size_t page = page_size();

    return n > SIZE_MAX - page ? 0 : (n + page - 1) & ~(page - 1);
}

static void *
pages(size_t n)
{
    return whole_pages(n) || !n ? page_aligned(whole_pages(n)) : NULL;
}

ALLOCATOR(memalign, "memalign", (size_t alignment, size_t n), (alignment, n), n,
          by_memalign)

ALLOCATOR(aligned_alloc, "aligned_alloc", (size_t alignment, size_t n),
          (alignment, n), n, by_memalign)

ALLOCATOR(valloc, "valloc", (size_t n), (n), n, page_aligned)

ALLOCATOR(pvalloc, "pvalloc", (size_t n), (n), whole_pages(n), pages)

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
posix_by_memalign(void **address, size_t alignment, size_t n)
{
    void *block;

    if (alignment % sizeof(void *) || !alignment ||
        (alignment & (alignment - 1)))
        return EINVAL;
    block = __libc_memalign(alignment, n);
    if (!block)
        return ENOMEM;
    *address = block;
    return 0;
}

CPPROF__HOOK static int
posix_memalign_first(void **address, size_t alignment, size_t n)
{
    posix_memalign_fn *next = load_relaxed(&posix_memalign_next);
    int64_t before = cpprof__heap_self.left;
    int failed;

    if (!next)
        next = (posix_memalign_fn *)cpprof__next_symbol("posix_memalign");
    if (!next)
        next = posix_by_memalign;
    store_relaxed(&posix_memalign_next, next);
    failed = next(address, alignment, n);
    if (failed || !n)
        return failed; /* tells nothing */
    if (was_counted(before)) {
        store_release(&posix_memalign_entry, next);
        return 0;
    }
    store_release(&posix_memalign_entry, posix_memalign_counted);
    if (cpprof__heap_due(n))
        cpprof__heap_sample(*address, n, 0);
    return 0;
}

void
cpprof__malloc_aligned_find(void)
{
    memalign_forget();
    aligned_alloc_forget();
    valloc_forget();
    pvalloc_forget();
    store_release(&posix_memalign_entry, posix_memalign_first);
    store_release(&posix_memalign_next,
                  (posix_memalign_fn *)cpprof__next_symbol("posix_memalign"));
}

#endif
