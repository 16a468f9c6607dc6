/* SPDX-License-Identifier: MIT */
/*
 * Sums by (stack, size class, label set, heap), and the peak.
 *
 * The peak of a heap is the moment when its estimated bytes in use were
 * highest. Copying all buckets at each new peak would cost far too much. So a
 * peak only raises an epoch, and each bucket saves its values at its first
 * change after that. Threads that race here may be off by the samples that they
 * are adding at that moment.
 */
#ifndef COLLECT_SIGNAL_HEAP_BUCKETS_H
#define COLLECT_SIGNAL_HEAP_BUCKETS_H

#include "collect/signal/heap/heap_tables.h"

struct cpprof__heap_key {
    uint32_t stack;
    uint32_t labels;
    uint16_t size_class;
    uint16_t heap;
};

/* Bytes of the index, private; and use so many zeros for it. */
size_t
cpprof__bucket_index_bytes(void);
void
cpprof__buckets_make(struct cpprof__heap *heap, void *index);

/* Give out numbers below that, for which there is memory. */
void
cpprof__buckets_set_bound(struct cpprof__heap *heap, uint32_t bound);

/*
 * Give up cold buckets of which nothing is in use. Those with label sets are
 * first: their sums go to {"labels":"[lost]"} of the same stack. If that does
 * not make enough room, stacks are next: their sums become those of lost
 * samples. For cpprof__recycle().
 */
void
cpprof__buckets_recycle(void);

/* Nothing was ever allocated, as far as all sums say. */
void
cpprof__buckets_begin_anew(struct cpprof__heap *heap);

/* Sizes that are near each other: 8 classes for each power of two. */
uint16_t
cpprof__heap_size_class(uint64_t n);

/* A size in 32 bits: exact below 2 GiB, to the MiB above. */
uint32_t
cpprof__heap_size_code(uint64_t n);
uint64_t
cpprof__heap_size_of_code(uint32_t code);

/* The number of a key's bucket; 0: there is no room. Safety: AS, lock-free. */
uint32_t
cpprof__heap_bucket_of(struct cpprof__heap *heap,
                       const struct cpprof__heap_key *key);

/* A block was allocated: into the sums that only grow. */
void
cpprof__heap_count_alloc(struct cpprof__heap *heap, uint32_t bucket,
                         uint64_t bytes, uint64_t weight);

/* Objects (in fractions) and their bytes came into use, or, negative, left. */
void
cpprof__heap_count_use(struct cpprof__heap *heap, uint32_t bucket,
                       int64_t objects, int64_t bytes);

#endif
