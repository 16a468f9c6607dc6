/* SPDX-License-Identifier: MIT */
/*
 * Reads the library's table of live blocks into memory that is not malloc's,
 * sorts it by address, and answers questions about it.
 */
#include "heap_table.h"

#include "collect/runtime/next.h"
#include "collect/signal/heap/heap_tables.h"
#include "tap.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static int
by_address(const void *a, const void *b)
{
    const struct heap_entry *x = a, *y = b;

    return (x->address > y->address) - (x->address < y->address);
}

static size_t
bytes_for(size_t n)
{
    return (n + 1) * sizeof(struct heap_entry);
}

static size_t n_room;

void
heap_table_read(struct heap_table *table)
{
    uint32_t i, n = cpprof__heap_n_blocks(&cpprof__heap);
    struct cpprof__heap_block block;

    n_room = n;
    table->n = 0;
    table->entries = mmap(NULL, bytes_for(n), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (table->entries == MAP_FAILED)
        bail("mmap: %s", strerror(errno));
    for (i = 1; i < n; i++)
        if (cpprof__heap_read_block(&cpprof__heap, i, &block) && !block.use)
            table->entries[table->n++] =
                (struct heap_entry){(uintptr_t)block.address, block.bytes};
    /* qsort may allocate: that is sampled and freed, and not in the copy. */
    qsort(table->entries, table->n, sizeof *table->entries, by_address);
}

void
heap_table_free(struct heap_table *table)
{
    munmap(table->entries, bytes_for(n_room));
    table->entries = NULL;
}

size_t
heap_table_find(const struct heap_table *table, const void *address,
                size_t *bytes)
{
    size_t lo = 0, hi = table->n, n = 0;

    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;

        if (table->entries[middle].address < (uintptr_t)address)
            lo = middle + 1;
        else
            hi = middle;
    }
    for (; lo < table->n && table->entries[lo].address == (uintptr_t)address;
         lo++, n++)
        *bytes = table->entries[lo].bytes;
    return n;
}

size_t
heap_entries_of(const void *address, size_t *bytes)
{
    uint32_t i, n = cpprof__heap_n_blocks(&cpprof__heap);
    struct cpprof__heap_block block;
    size_t found = 0;

    for (i = 1; i < n; i++)
        if (cpprof__heap_read_block(&cpprof__heap, i, &block) && !block.use &&
            block.address == (uintptr_t)address) {
            found++;
            *bytes = block.bytes;
        }
    return found;
}

size_t
heap_n_live(void)
{
    uint32_t i, n = cpprof__heap_n_blocks(&cpprof__heap);
    struct cpprof__heap_block block;
    size_t found = 0;

    for (i = 1; i < n; i++)
        found +=
            cpprof__heap_read_block(&cpprof__heap, i, &block) && !block.use;
    return found;
}

uint64_t
heap_n_sampled(void)
{
    uint32_t i, n = cpprof__heap_n_buckets(&cpprof__heap);
    struct cpprof__heap_bucket bucket;
    uint64_t found = 0;

    for (i = 1; i < n; i++)
        if (cpprof__heap_read_bucket(&cpprof__heap, i, &bucket))
            found += bucket.n_sampled;
    return found;
}

static const void *
base_of(void *f)
{
    Dl_info info;

    return f && dladdr(f, &info) ? info.dli_fbase : NULL;
}

bool
heap_has(const char *function)
{
    return base_of(cpprof__next_symbol(function)) ==
           base_of(cpprof__next_symbol("malloc"));
}

bool
heap_is_glibc(void)
{
    return base_of(cpprof__next_symbol("malloc")) ==
           base_of(cpprof__next_symbol("gnu_get_libc_version"));
}

bool
heap_is_on(int argc, char **argv)
{
    Dl_info info;

    if (argc < 2 || strcmp(argv[1], "glibc") == 0)
        return heap_is_glibc();
    return dladdr(cpprof__next_symbol("malloc"), &info) &&
           strstr(info.dli_fname, argv[1]);
}
