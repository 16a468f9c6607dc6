/* SPDX-License-Identifier: MIT */
/*
 * libcpprof-jemalloc.so: jemalloc's own names, for programs that call them.
 *
 * They are not in libcpprof.so, because their presence is how programs find out
 * whether jemalloc is there (a weak reference, or dlsym). This library is
 * loaded on purpose, between libcpprof.so and jemalloc:
 *
 *     LD_PRELOAD=libcpprof.so:libcpprof-jemalloc.so:libjemalloc.so.2
 *
 * Source: jemalloc(3), "Non-standard API".
 */
#include <cpprof/heap.h>

#include <dlfcn.h>
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

/* Where jemalloc has it; who calls these without jemalloc cannot go on. */
static void *
find(const char *name)
{
    void *f = dlsym(RTLD_NEXT, name);

    if (!f)
        abort();
    return f;
}

#define NEXT(type, name)                                                       \
    ({                                                                         \
        static void *found;                                                    \
        void *f_ = __atomic_load_n(&found, __ATOMIC_RELAXED);                  \
                                                                               \
        if (!f_) {                                                             \
            f_ = find(#name);                                                  \
            __atomic_store_n(&found, f_, __ATOMIC_RELAXED);                    \
        }                                                                      \
        (type *)f_;                                                            \
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

void *
mallocx(size_t n, int flags)
{
    void *block = NEXT(mallocx_fn, mallocx)(n, flags);

    if (block)
        cpprof_heap_record(block, n);
    return block;
}

/* A block that could not be moved is sampled anew: its size is known, what it
 * was asked for is not. */
void *
rallocx(void *block, size_t n, int flags)
{
    size_t before = NEXT(sallocx_fn, sallocx)(block, flags);
    void *moved;

    cpprof_heap_release(block);
    moved = NEXT(rallocx_fn, rallocx)(block, n, flags);
    cpprof_heap_record(moved ? moved : block, moved ? n : before);
    return moved;
}

size_t
xallocx(void *block, size_t n, size_t extra, int flags)
{
    size_t before = NEXT(sallocx_fn, sallocx)(block, flags);
    size_t after = NEXT(xallocx_fn, xallocx)(block, n, extra, flags);

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
    NEXT(dallocx_fn, dallocx)(block, flags);
}

void
sdallocx(void *block, size_t n, int flags)
{
    cpprof_heap_release(block);
    NEXT(sdallocx_fn, sdallocx)(block, n, flags);
}
