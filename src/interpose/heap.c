/* SPDX-License-Identifier: MIT */
#include "interpose/heap.h"

#include "collect/heap/heap_owner.h"
#include "collect/heap/heap_stacks.h"
#include "collect/runtime/next.h"
#include "collect/signal/heap/heap.h"
#include "collect/store/tables.h"
#include "interpose/take_over.h"

#include <link.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Address space; pages come as they are touched, one by one: with huge ones a
 * few samples would take megabytes. */
static void *
reserve(size_t n)
{
    void *block = mmap(NULL, n, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (block == MAP_FAILED)
        return NULL;
    madvise(block, n, MADV_NOHUGEPAGE);
    return block;
}

static void
make_heap(void)
{
    void *block = reserve(cpprof__heap_bytes());
    void *private = reserve(cpprof__heap_private_bytes());

    if (block && private) {
        cpprof__heap_make(block, private, &cpprof__tables.tree);
        return;
    }
    if (block)
        munmap(block, cpprof__heap_bytes());
    if (private)
        munmap(private, cpprof__heap_private_bytes());
}

#if CPPROF__HAS_ALLOCATOR

/* Another's malloc is in front of ours: then the names that still come to us
 * are not sampled, since their blocks may be freed behind our back. */
static bool
another_is_in_front(void)
{
    const struct link_map *module;
    void *first = cpprof__first_symbol("malloc", &module);

    return first && (uintptr_t)first != cpprof__heap_our_malloc;
}

static void
find_mallocs(void)
{
    cpprof__heap_our_malloc = cpprof__our_malloc();
    cpprof__find_allocator();
}

#else

static bool
another_is_in_front(void)
{
    return true;
}

static void
find_mallocs(void)
{
}

#endif

/* Bring the names to what the rate is now, whoever else changes it. What frees
 * looks for samples before there can be one, and as long as there may be. */
static void
follow_rate(void)
{
    bool counts;

    do {
        counts = cpprof__heap_set_rate(-1) != 0;
        if (counts) {
            cpprof__switch_group(CPPROF__RELEASE, true);
            cpprof__switch_group(CPPROF__DELETE, true);
        }
        cpprof__switch_group(CPPROF__ALLOCATE, counts);
        cpprof__switch_group(CPPROF__NEW, counts);
    } while (counts != (cpprof__heap_set_rate(-1) != 0));
}

void
cpprof__heap_start(void)
{
    find_mallocs();
    cpprof__main_stack_find();
    if (cpprof__tables_make(NULL) == CPPROF_OK)
        make_heap();
    cpprof__maps_start();
    if (another_is_in_front())
        return;
    cpprof__heap_rate_changed = follow_rate;
    follow_rate();
}
