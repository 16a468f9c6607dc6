/* SPDX-License-Identifier: MIT */
/*
 * The tables of heaps: live blocks, and sums by stack, size class, label set
 * and heap; and reading them while threads change them, or in a copy of which
 * nothing is known: no number that is read is trusted.
 *
 * If the live blocks are summed up before the buckets are read, no bucket has
 * more in use than was allocated. Each block that a thread is adding at that
 * moment is counted completely or not at all; nothing else can be wrong.
 */
#ifndef COLLECT_SIGNAL_HEAP_TABLES_H
#define COLLECT_SIGNAL_HEAP_TABLES_H

#include "arch/atomic.h"
#include "collect/signal/tables/stack_tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most live sampled blocks, and buckets; there is room for as many as the
 * rate makes likely (heap.c). What finds none is counted as lost, and the
 * weight of it is said in the profile. */
#define CPPROF__HEAP_LIVE    (1u << 22)
#define CPPROF__HEAP_BUCKETS (1u << 19)

/* Heaps: malloc, which is 0, and the program's own. */
#define CPPROF__HEAP_HEAPS 64

/* Values are summed in 1/1024ths, since weights are fractions. */
#define CPPROF__HEAP_FRACTION_BITS 10

/* A live sampled block. */
struct cpprof__heap_block {
    uint64_t
        address;    /* 0: the entry is free, or its block is not complete yet */
    uint64_t bytes; /* while the entry is free: the next free one */
    uint64_t weight; /* objects that it stands for, in fractions */
    uint32_t bucket;
    uint32_t use; /* low byte: the heap; the rest counts uses of the entry, so
                     that a reader notices a change */
};

/* All samples of one stack, size class, label set and heap. The sums only
 * grow. */
struct cpprof__heap_bucket {
    uint32_t stack;  /* node of the tree */
    uint32_t labels; /* cpprof__label_set_number(), or 0 */
    uint16_t size_class;
    uint16_t heap;          /* 0: malloc */
    uint32_t first_size;    /* cpprof__heap_size_code() of its first block */
    uint64_t alloc_objects; /* estimates, in fractions */
    uint64_t alloc_bytes;
    uint64_t n_sampled; /* unweighted, for the text form */
    uint64_t bytes_sampled;
    /* In use now and at the peak. The peak's numbers are those at `epoch`; a
     * bucket that did not change since then has them in .now_*. */
    int64_t now_objects;
    int64_t now_bytes;
    int64_t peak_objects;
    int64_t peak_bytes;
    uint64_t epoch;
};

/* How much of a heap is in use, and when it was most. */
struct cpprof__heap_peak {
    int64_t now_bytes; /* in fractions */
    int64_t peak_bytes;
    uint64_t epoch;   /* raised at every new peak */
    uint64_t time_ns; /* CLOCK_REALTIME when the peak ended; 0: it lasts */
};

/* The head of the block that holds all of it; without pointers, so that
 * another process can read a copy of it. */
struct cpprof__heap_head {
    int64_t rate;
    uint64_t n_rates;    /* changes of the rate while something was sampled */
    uint32_t n_blocks;   /* entries ever in use; entry 0 never is */
    uint32_t n_buckets;  /* likewise; may be more than there are: clamp it */
    uint64_t free_block; /* list of free entries: tag << 32 | number */
    uint64_t n_lost;     /* samples without room: in no bucket */
    uint64_t lost_bytes; /* their weight, in fractions */
    uint64_t lost_objects;
    uint64_t n_unfollowed; /* in a bucket, but without room as a live block, so
                            * missing from what is in use */
    uint64_t begun_ns;     /* CLOCK_REALTIME of the attach from which on blocks
                            * are counted; 0: of all of the process's life */
    struct cpprof__heap_peak peaks[CPPROF__HEAP_HEAPS];
};

struct cpprof__heap {
    struct cpprof__heap_head *head;
    struct cpprof__heap_block *blocks;
    struct cpprof__heap_bucket *buckets;
    uint32_t live_bound; /* numbers of blocks are below it */
    uint32_t bucket_bound;
    /* Private. */
    struct cpprof__tree *tree;
    void *live_index;
    uint32_t *bucket_index;
    uint32_t *born_s; /* of each block, CLOCK_MONOTONIC; NULL: not kept */
    struct cpprof__entries entries; /* of buckets */
    bool gives_up_stacks;           /* recycling */
};

#pragma GCC visibility push(hidden)
extern struct cpprof__heap cpprof__heap; /* this process's */

/* Are buckets kept apart by the thread's labels? Set by the first request for
 * labels. */
extern uint32_t cpprof__wants_labels;
#pragma GCC visibility pop

/* Bytes of the block of head, blocks and buckets, which can be copied. */
size_t
cpprof__heap_bytes(void);

/* Where in it the buckets begin, behind all blocks. */
size_t
cpprof__heap_buckets_offset(void);

/* Set the pointers to the parts, all of which are there, or to those of a
 * block. If another process made them, only what is declared here may be used.
 */
void
cpprof__heap_use_parts(struct cpprof__heap *heap, void *head, void *blocks,
                       void *buckets);
void
cpprof__heap_lay_out(struct cpprof__heap *heap, void *block);

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
