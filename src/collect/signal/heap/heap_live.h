/* SPDX-License-Identifier: MIT */
/*
 * The live sampled blocks: entries, and the way from an address to an entry.
 *
 * The index consists of cache lines: 15 slots and the number of an overflow
 * line. A small part is used while few blocks are live, so that a usual program
 * touches little memory, and a large part from then on. In each part lines
 * follow addresses (one line for 128 bytes). Regions as large as the whole
 * index begin at lines that a hash chooses. So neighbours in memory, which are
 * allocated and freed together, are neighbours here, and no stride can put all
 * of them into one line.
 *
 * A slot holds the entry's number and 10 bits of the address's hash, so a
 * search without a match hardly ever reads an entry. Slots are taken by
 * compare-and-swap and set to 0 when the block is freed.
 */
#ifndef COLLECT_SIGNAL_HEAP_LIVE_H
#define COLLECT_SIGNAL_HEAP_LIVE_H

#include "collect/signal/heap/heap_tables.h"

/* Bytes of the filter, a power of two: 4 GiB of addresses before it begins
 * anew. Pages without a sampled block stay the kernel's page of zeros. */
#define CPPROF__HEAP_FILTER (1u << 22)

#pragma GCC visibility push(hidden)
/* CPPROF__HEAP_FILTER bytes: how many sampled blocks have an address that falls
 * here; 255: many. NULL: nothing was ever sampled. */
extern uint8_t *cpprof__heap_filter;
#pragma GCC visibility pop

/* One byte for each KiB of addresses. At one sample in 512 KiB few of them are
 * not 0, and the bytes of a whole heap stay in the cache. */
static inline uint8_t *
cpprof__heap_filter_of(uintptr_t address)
{
    return load_relaxed(&cpprof__heap_filter) +
           ((address >> 10) & (CPPROF__HEAP_FILTER - 1));
}

/* May address be a sampled block? */
static inline bool
cpprof__heap_may_be_sampled(const void *address)
{
    return load_relaxed(&cpprof__heap_filter) &&
           __builtin_expect(
               load_relaxed(cpprof__heap_filter_of((uintptr_t)address)) != 0,
               0);
}

/* Bytes of the index, private, for numbers below that bound; those for a lower
 * one are its beginning. */
size_t
cpprof__live_index_bytes(uint32_t bound);

/* Give out numbers below that, for which there is memory. */
void
cpprof__live_set_bound(struct cpprof__heap *heap, uint32_t bound);

/*
 * Put a block into an entry and the entry into the index; block->use is only
 * the heap. False: there is no room. Safety: AS, lock-free.
 */
bool
cpprof__live_add(struct cpprof__heap *heap,
                 const struct cpprof__heap_block *block);

/* Take out the block at an address; false: it is not here. */
bool
cpprof__live_remove(struct cpprof__heap *heap, uintptr_t address,
                    uint16_t which, struct cpprof__heap_block *block);

/* Is the block at an address there? It may be freed before the answer comes. */
bool
cpprof__live_has(const struct cpprof__heap *heap, uintptr_t address,
                 uint16_t which);

#endif
