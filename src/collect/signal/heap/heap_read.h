/* SPDX-License-Identifier: MIT */
/*
 * Reading the heap's tables while threads change them, or in a copy of which
 * nothing is known: no number that is read is trusted.
 *
 * If the live blocks are summed up before the buckets are read, no bucket has
 * more in use than was allocated. Each block that a thread is adding at that
 * moment is counted completely or not at all; nothing else can be wrong.
 */
#ifndef COLLECT_SIGNAL_HEAP_READ_H
#define COLLECT_SIGNAL_HEAP_READ_H

#include "collect/signal/heap/heap.h"

/* A heap of n bytes that were made elsewhere; false: it is none. Only what is
 * declared here may be used with it. */
bool
cpprof__heap_open(struct cpprof__heap *heap, void *block, size_t n);

/* Numbers below these may be in use, from 1 on. */
uint32_t
cpprof__heap_n_blocks(const struct cpprof__heap *heap);
uint32_t
cpprof__heap_n_buckets(const struct cpprof__heap *heap);

/* A copy of a live block that is of one piece; false: there is none. Its .use
 * is the heap, its .bucket one that is. */
bool
cpprof__heap_read_block(const struct cpprof__heap *heap, uint32_t number,
                        struct cpprof__heap_block *block);

/* A copy of a bucket; false: nothing was ever counted there. */
bool
cpprof__heap_read_bucket(const struct cpprof__heap *heap, uint32_t number,
                         struct cpprof__heap_bucket *bucket);

struct cpprof__heap_sum {
    uint64_t objects; /* in fractions */
    uint64_t bytes;
    uint64_t n_sampled;
    uint64_t bytes_sampled;
};

/* Add what is in use to sums[bucket], buckets below n. */
void
cpprof__heap_sum_live(const struct cpprof__heap *heap,
                      struct cpprof__heap_sum *sums, uint32_t n);

/* What was in use in the bucket when most was: objects and bytes only. epoch
 * is the heap's, .peaks[heap].epoch, read before the first bucket. */
void
cpprof__heap_at_peak(const struct cpprof__heap_bucket *bucket, uint64_t epoch,
                     struct cpprof__heap_sum *sum);

#endif
