/* SPDX-License-Identifier: MIT */
/*
 * The block that holds a heap's tables, and reading its blocks and buckets
 * while threads change them, or those of a copy.
 *
 * A block is copied field by field and counts only if its address and its use
 * counter are the same afterwards. The sums of a bucket are read in the reverse
 * of the order in which they are written, so none of them is behind the one
 * that was read first.
 *
 * Invariants: every number that is read is checked against the bounds of the
 * table; nothing is written.
 */
#include "collect/signal/heap/heap_tables.h"

#include "arch/place.h"

/* Each part begins on a page of its own. */
#define HEAD_BYTES 4096
_Static_assert(sizeof(struct cpprof__heap_head) <= HEAD_BYTES, "one page");
_Static_assert(sizeof(struct cpprof__heap_block) == 32, "two to a cache line");

#define BLOCKS_BYTES                                                           \
    ((size_t)CPPROF__HEAP_LIVE * sizeof(struct cpprof__heap_block))
#define BUCKETS_BYTES                                                          \
    ((size_t)CPPROF__HEAP_BUCKETS * sizeof(struct cpprof__heap_bucket))

struct cpprof__heap cpprof__heap CPPROF__AT_START;
uint32_t cpprof__wants_labels CPPROF__AT_START;

size_t
cpprof__heap_bytes(void)
{
    return HEAD_BYTES + BLOCKS_BYTES + BUCKETS_BYTES;
}

size_t
cpprof__heap_buckets_offset(void)
{
    return HEAD_BYTES + BLOCKS_BYTES;
}

void
cpprof__heap_use_parts(struct cpprof__heap *heap, void *head, void *blocks,
                       void *buckets)
{
    heap->head = head;
    heap->blocks = blocks;
    heap->buckets = buckets;
    heap->live_bound = CPPROF__HEAP_LIVE;
    heap->bucket_bound = CPPROF__HEAP_BUCKETS;
}

void
cpprof__heap_lay_out(struct cpprof__heap *heap, void *block)
{
    char *bytes = block;

    cpprof__heap_use_parts(heap, block, bytes + HEAD_BYTES,
                           bytes + cpprof__heap_buckets_offset());
}

static uint32_t
at_most(uint32_t n, uint32_t max)
{
    return n < max ? n : max;
}

uint32_t
cpprof__heap_n_blocks(const struct cpprof__heap *heap)
{
    return at_most(load_acquire(&heap->head->n_blocks),
                   load_relaxed(&heap->live_bound));
}

uint32_t
cpprof__heap_n_buckets(const struct cpprof__heap *heap)
{
    return at_most(load_acquire(&heap->head->n_buckets),
                   load_relaxed(&heap->bucket_bound));
}

/* The entry may become another block's while it is read: then .use has
 * changed, or .address is 0, at the latest when the new values are seen. */
bool
cpprof__heap_read_block(const struct cpprof__heap *heap, uint32_t number,
                        struct cpprof__heap_block *block)
{
    const struct cpprof__heap_block *from = &heap->blocks[number];
    uint32_t use;

    if (number == 0 || number >= load_relaxed(&heap->live_bound))
        return false;
    block->address = load_acquire(&from->address);
    use = load_acquire(&from->use);
    block->bytes = load_acquire(&from->bytes);
    block->weight = load_acquire(&from->weight);
    block->bucket = load_acquire(&from->bucket);
    block->use = use & 0xff;
    return block->address && load_acquire(&from->address) == block->address &&
           load_relaxed(&from->use) == use && block->bucket != 0 &&
           block->bucket < load_relaxed(&heap->bucket_bound) &&
           block->use < CPPROF__HEAP_HEAPS;
}

bool
cpprof__heap_read_bucket(const struct cpprof__heap *heap, uint32_t number,
                         struct cpprof__heap_bucket *bucket)
{
    const struct cpprof__heap_bucket *from = &heap->buckets[number];

    if (number == 0 || number >= load_relaxed(&heap->bucket_bound))
        return false;
    /* The last that is counted comes first: the rest is not behind it. */
    bucket->alloc_bytes = load_acquire(&from->alloc_bytes);
    bucket->alloc_objects = load_acquire(&from->alloc_objects);
    bucket->bytes_sampled = load_acquire(&from->bytes_sampled);
    bucket->n_sampled = load_acquire(&from->n_sampled);
    if (!bucket->alloc_objects)
        return false;
    bucket->stack = from->stack;
    bucket->labels = from->labels;
    bucket->size_class = from->size_class;
    bucket->heap = from->heap;
    bucket->first_size = load_relaxed(&from->first_size);
    bucket->epoch = load_acquire(&from->epoch);
    bucket->now_objects = load_relaxed(&from->now_objects);
    bucket->now_bytes = load_relaxed(&from->now_bytes);
    bucket->peak_objects = load_relaxed(&from->peak_objects);
    bucket->peak_bytes = load_relaxed(&from->peak_bytes);
    return bucket->heap < CPPROF__HEAP_HEAPS;
}

void
cpprof__heap_sum_live(const struct cpprof__heap *heap,
                      struct cpprof__heap_sum *sums, uint32_t n)
{
    uint32_t n_blocks = cpprof__heap_n_blocks(heap);
    struct cpprof__heap_block block;
    uint32_t i;

    for (i = 1; i < n_blocks; i++) {
        if (!cpprof__heap_read_block(heap, i, &block) || block.bucket >= n)
            continue;
        sums[block.bucket].objects += block.weight;
        sums[block.bucket].bytes += block.weight * block.bytes;
        sums[block.bucket].n_sampled++;
        sums[block.bucket].bytes_sampled += block.bytes;
    }
}

void
cpprof__heap_at_peak(const struct cpprof__heap_bucket *bucket, uint64_t epoch,
                     struct cpprof__heap_sum *sum)
{
    /* A bucket that has seen a later peak than `epoch` is off by the samples
     * since. */
    bool kept = bucket->epoch >= epoch;
    int64_t objects = kept ? bucket->peak_objects : bucket->now_objects;
    int64_t bytes = kept ? bucket->peak_bytes : bucket->now_bytes;

    *sum = (struct cpprof__heap_sum){
        .objects = objects > 0 ? (uint64_t)objects : 0,
        .bytes = bytes > 0 ? (uint64_t)bytes : 0,
    };
}
