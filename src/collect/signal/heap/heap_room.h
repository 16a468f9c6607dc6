/* SPDX-License-Identifier: MIT */
/*
 * The memory of the heap profile's tables: as much of each as the rate makes
 * likely, at places that leave room for all that their numbers allow. A bound
 * on live blocks, a multiple of 65536, bounds all tables.
 *
 * Safety: AS.
 */
#ifndef COLLECT_SIGNAL_HEAP_ROOM_H
#define COLLECT_SIGNAL_HEAP_ROOM_H

#include "collect/signal/heap/heap_tables.h"

/* A bound that is enough for the rate; 0: the default. */
uint32_t
cpprof__heap_live_for(int64_t rate);
uint32_t
cpprof__heap_buckets_for(uint32_t live);

/* Zeros for that many: heap_tables.h's block, and private memory behind it;
 * NULL: there is no room. */
void *
cpprof__heap_map(uint32_t live);

/* More zeros, of the heap's own, for a larger bound. False: there is no room,
 * or the place was taken; nothing has changed. */
bool
cpprof__heap_map_more(const struct cpprof__heap *heap, uint32_t live);

/* Bytes of the memory that is private, which begins with the index of blocks,
 * and where its other parts begin: the index of buckets, the filter, and the
 * births of blocks. */
size_t
cpprof__heap_private_bytes(void);
size_t
cpprof__heap_bucket_index_offset(void);
size_t
cpprof__heap_filter_offset(void);
size_t
cpprof__heap_born_offset(void);

#endif
