/* SPDX-License-Identifier: MIT */
#include "interpose/heap.h"

#include "collect/heap/heap_owner.h"
#include "collect/heap/heap_stacks.h"
#include "collect/store/tables.h"
#include "interpose/allocator.h"

#include <link.h>
#include <stdlib.h>
#include <sys/mman.h>

bool cpprof__allocator_stands_back;
bool cpprof__allocator_counts = true;
bool cpprof__allocator_checks = true;
__thread bool cpprof__allocator_probes;

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

#if INTERPOSE_ALLOCATOR

static bool
another_is_in_front(void)
{
    const struct link_map *module;
    void *first = cpprof__first_symbol("malloc", &module);

    return first && (uintptr_t)first != cpprof__heap_our_malloc;
}

static void
find_all(void)
{
    cpprof__malloc_find();
    cpprof__malloc_aligned_find();
    cpprof__operators_find();
    cpprof__allocator_stands_back = another_is_in_front();
}

static void
switch_all(void)
{
    cpprof__malloc_switch();
    cpprof__malloc_aligned_switch();
    cpprof__operators_switch();
}

/* Bring the pointers to what the rate is now, whoever else changes it. What
 * frees looks for samples before there can be one. */
static void
follow_rate(void)
{
    bool counts;

    do {
        counts = cpprof__heap_set_rate(-1) != 0;
        if (counts && !read_switch(&cpprof__allocator_checks)) {
            set_entry(&cpprof__allocator_checks, true);
            switch_all();
        }
        set_entry(&cpprof__allocator_counts, counts);
        switch_all();
    } while (counts != (cpprof__heap_set_rate(-1) != 0));
}

static void
begin_to_follow(void)
{
    cpprof__allocator_checks = cpprof__heap_set_rate(-1) != 0;
    cpprof__heap_rate_changed = follow_rate;
    follow_rate();
}

static int
find_operators(struct dl_phdr_info *info, size_t size, void *arg)
{
    cpprof__operators_find();
    return 1;
}

/* Inside a look at its list the loader takes nothing out of it: other threads
 * may be unloading, too. */
void
cpprof__heap_after_unload(void)
{
    dl_iterate_phdr(find_operators, NULL);
}

#else

static void
find_all(void)
{
}

static void
begin_to_follow(void)
{
}

void
cpprof__heap_after_unload(void)
{
}

#endif

void
cpprof__heap_start(void)
{
    find_all();
    cpprof__main_stack_find();
    if (cpprof__tables_make(NULL) == CPPROF_OK)
        make_heap();
    begin_to_follow();
}
