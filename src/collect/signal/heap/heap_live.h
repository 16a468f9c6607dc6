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

#include "collect/signal/heap/heap.h"

/* Bytes of the index, private. */
size_t
cpprof__live_index_bytes(void);

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

/* Is it there? For measuring; who frees it calls remove. */
bool
cpprof__live_has(const struct cpprof__heap *heap, uintptr_t address,
                 uint16_t which);

#endif
