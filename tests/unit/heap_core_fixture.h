/* SPDX-License-Identifier: MIT */
/* The heap's tables in fresh memory, and allocations that are addresses only:
 * nothing in the core reads what they point to. */
#ifndef TESTS_HEAP_CORE_FIXTURE_H
#define TESTS_HEAP_CORE_FIXTURE_H

#include "collect/signal/heap/heap.h"
#include "collect/signal/heap/heap_room.h"
#include "collect/signal/heap/heap_tables.h"
#include "collect/signal/heap/hook_stack.h"
#include "collect/threads/stacks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define FRACTION ((uint64_t)1 << CPPROF__HEAP_FRACTION_BITS)

static struct cpprof__tree heap_tree;

/* Block and private memory of the tree, and of the heap. */
static void *heap_memory[4];
static size_t heap_memory_bytes[4];

__attribute__((unused)) static void *
fresh_pages(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    assert_ptr_not_equal(p, MAP_FAILED);
    madvise(p, n, MADV_NOHUGEPAGE); /* as the library does */
    return p;
}

/* An empty heap with that rate, as after the constructor; the running thread
 * draws from a fixed seed. */
__attribute__((unused)) static void
fresh_heap(int64_t rate)
{
    unsigned i;

    for (i = 0; i < 4; i++)
        if (heap_memory[i])
            munmap(heap_memory[i], heap_memory_bytes[i]);
    heap_memory_bytes[0] = cpprof__tree_bytes();
    heap_memory_bytes[1] = cpprof__tree_index_bytes();
    heap_memory_bytes[2] = cpprof__heap_bytes();
    heap_memory_bytes[3] = cpprof__heap_private_bytes();
    for (i = 0; i < 4; i++)
        heap_memory[i] = fresh_pages(heap_memory_bytes[i]);
    cpprof__heap_filter = NULL;
    cpprof__stack_of_main(); /* or each walk takes a system call */
    memset(&cpprof__hook_self, 0, sizeof cpprof__hook_self);
    cpprof__hook_self.random = 20240229;
    cpprof__tree_make(&heap_tree, heap_memory[0], heap_memory[1]);
    cpprof__heap_set_rate(rate);
    cpprof__heap_make(heap_memory[2], heap_memory[3], &heap_tree,
                      CPPROF__HEAP_LIVE);
}

/* What malloc's hook does. */
__attribute__((unused, noinline)) static void
allocated(uintptr_t address, size_t n)
{
    if (cpprof__heap_due(n))
        cpprof__heap_sample((void *)address, n, 0);
    __asm__ volatile("");
}

/* What free's hook does; was it sampled? */
__attribute__((unused, noinline)) static bool
freed(uintptr_t address)
{
    return cpprof__heap_may_be_sampled((void *)address) &&
           cpprof__heap_remove((void *)address, 0, NULL);
}

/* What is in use, over all buckets, in fractions; n_sampled blocks. */
__attribute__((unused)) static struct cpprof__heap_sum
in_use(const struct cpprof__heap *heap)
{
    static struct cpprof__heap_sum sums[CPPROF__HEAP_BUCKETS];
    struct cpprof__heap_sum all = {0, 0, 0, 0};
    uint32_t n = cpprof__heap_n_buckets(heap);
    uint32_t i;

    memset(sums, 0, n * sizeof *sums);
    cpprof__heap_sum_live(heap, sums, n);
    for (i = 0; i < n; i++) {
        all.objects += sums[i].objects;
        all.bytes += sums[i].bytes;
        all.n_sampled += sums[i].n_sampled;
        all.bytes_sampled += sums[i].bytes_sampled;
    }
    return all;
}

/* What was ever allocated. */
__attribute__((unused)) static struct cpprof__heap_sum
ever_allocated(const struct cpprof__heap *heap)
{
    struct cpprof__heap_sum all = {0, 0, 0, 0};
    struct cpprof__heap_bucket b;
    uint32_t i;

    for (i = 0; i < cpprof__heap_n_buckets(heap); i++) {
        if (!cpprof__heap_read_bucket(heap, i, &b))
            continue;
        all.objects += b.alloc_objects;
        all.bytes += b.alloc_bytes;
        all.n_sampled += b.n_sampled;
        all.bytes_sampled += b.bytes_sampled;
    }
    return all;
}

#endif
