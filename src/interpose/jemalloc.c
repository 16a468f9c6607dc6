/* SPDX-License-Identifier: MIT */
/*
 * libcpprof-jemalloc.so: jemalloc's own names, for programs that call them.
 *
 * They are not in libcpprof.so, because their presence is how programs find out
 * whether jemalloc is there (a weak reference, or dlsym). This library is
 * loaded on purpose, between libcpprof.so and jemalloc:
 *
 *     LD_PRELOAD=libcpprof.so.1:DIR/cpprof/libcpprof-jemalloc.so:libjemalloc.so.2
 *
 * Source: jemalloc(3), "Non-standard API".
 */
#include "arch/atomic.h"
#include "collect/runtime/next.h"
#include <cpprof/heap.h>

#include <stdlib.h>

CPPROF_API void *
mallocx(size_t n, int flags);
CPPROF_API void *
rallocx(void *block, size_t n, int flags);
CPPROF_API size_t
xallocx(void *block, size_t n, size_t extra, int flags);
CPPROF_API void
dallocx(void *block, int flags);
CPPROF_API void
sdallocx(void *block, size_t n, int flags);

/* Where jemalloc has it; who calls these without jemalloc cannot go on. As in
 * libcpprof.so it is found without the loader (collect/runtime/real.h): by the
 * constructor, or by who calls earlier. */
static void *
find(const char *name)
{
    void *f = cpprof__next_symbol(name);

    if (!f)
        abort();
    return f;
}

#define NEXT(name)                                                             \
    ({                                                                         \
        void *f_ = load_relaxed(&name##_next);                                 \
                                                                               \
        if (!f_)                                                               \
            f_ = find(#name);                                                  \
        (name##_fn *)f_;                                                       \
    })

typedef void *
mallocx_fn(size_t, int);
typedef void *
rallocx_fn(void *, size_t, int);
typedef size_t
xallocx_fn(void *, size_t, size_t, int);
typedef size_t
sallocx_fn(const void *, int);
typedef void
dallocx_fn(void *, int);
typedef void
sdallocx_fn(void *, size_t, int);

static void *mallocx_next, *rallocx_next, *xallocx_next, *sallocx_next,
    *dallocx_next, *sdallocx_next;

/* None of them is there when the program has no jemalloc, and calls none. */
__attribute__((constructor)) static void
find_all(void)
{
    store_relaxed(&mallocx_next, cpprof__next_symbol("mallocx"));
    store_relaxed(&rallocx_next, cpprof__next_symbol("rallocx"));
    store_relaxed(&xallocx_next, cpprof__next_symbol("xallocx"));
    store_relaxed(&sallocx_next, cpprof__next_symbol("sallocx"));
    store_relaxed(&dallocx_next, cpprof__next_symbol("dallocx"));
    store_relaxed(&sdallocx_next, cpprof__next_symbol("sdallocx"));
}

void *
mallocx(size_t n, int flags)
{
    void *block = NEXT(mallocx)(n, flags);

    if (block)
        cpprof_heap_record(block, n);
    return block;
}

/* A block that could not be moved is sampled anew: its size is known, what it
 * was asked for is not. */
void *
rallocx(void *block, size_t n, int flags)
{
    size_t before = NEXT(sallocx)(block, flags);
    void *moved;

    cpprof_heap_release(block);
    moved = NEXT(rallocx)(block, n, flags);
    cpprof_heap_record(moved ? moved : block, moved ? n : before);
    return moved;
}

size_t
xallocx(void *block, size_t n, size_t extra, int flags)
{
    size_t before = NEXT(sallocx)(block, flags);
    size_t after = NEXT(xallocx)(block, n, extra, flags);

    if (after != before) {
        cpprof_heap_release(block);
        cpprof_heap_record(block, after);
    }
    return after;
}

void
dallocx(void *block, int flags)
{
    cpprof_heap_release(block);
    NEXT(dallocx)(block, flags);
}

void
sdallocx(void *block, size_t n, int flags)
{
    cpprof_heap_release(block);
    NEXT(sdallocx)(block, n, flags);
}
