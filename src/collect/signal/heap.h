/* SPDX-License-Identifier: MIT */
/*
 * What runs inside malloc and free: which allocation is sampled, and the
 * tables of what was.
 *
 * Each thread counts down the bytes to its next sample, exponentially
 * distributed with the mean `rate`; so every byte is equally likely to be
 * sampled, and a block of n bytes with probability p = 1 - exp(-n / rate). A
 * sampled block stands for 1 / p blocks of its size (Horvitz and Thompson
 * 1952); that weight is stored with the block, so nothing depends on what the
 * rate is later, and sizes may be mixed on one stack.
 *
 * free() of any pointer asks a filter (one byte for its address, counting
 * sampled blocks that fall on it) and only then the exact table. An entry is
 * taken out by the one who frees the block, before the real free: the address
 * has one owner, so entries of one address never meet and no lock is needed.
 *
 * What is in use is the sum over the live entries, and is right by
 * construction; what was ever allocated is summed up in buckets, one for each
 * (stack, size class, label set, heap).
 */
#ifndef COLLECT_SIGNAL_HEAP_H
#define COLLECT_SIGNAL_HEAP_H

#include "arch/atomic.h"
#include "collect/signal/stack_tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPPROF__HEAP_RATE 524288

/* Bounds: live sampled blocks, and buckets. What finds no room is counted as
 * lost and the weight of it is said in the profile. */
#define CPPROF__HEAP_LIVE    (1u << 24)
#define CPPROF__HEAP_BUCKETS (1u << 19)

/* Bytes of the filter, a power of two: 4 MiB of address space, of which pages
 * without a sampled block stay the kernel's page of zeros. */
#define CPPROF__HEAP_FILTER (1u << 22)

/* Values are summed in 1/1024ths, since weights are fractions. */
#define CPPROF__HEAP_FRACTION_BITS 10

/* A live sampled block. */
struct cpprof__heap_block {
    uint64_t address; /* 0: the entry is free */
    uint64_t bytes;
    uint64_t weight; /* objects that it stands for, in fractions */
    uint32_t bucket;
    uint32_t next_free;
};

/* All samples of one stack, size class, label set and heap. The sums only
 * grow. */
struct cpprof__heap_bucket {
    uint32_t stack;  /* node of the tree */
    uint32_t labels; /* number + 1 in collect/tables.h, or 0 */
    uint16_t size_class;
    uint16_t heap; /* 0: malloc */
    uint32_t pad;
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

/* The head of the block that holds all of it; without pointers, so that
 * another process can read it. */
struct cpprof__heap_head {
    char magic[8];
    int64_t rate;
    uint32_t n_blocks;   /* entries ever in use */
    uint32_t n_buckets;  /* bucket 0 is never used */
    uint64_t free_block; /* list of free entries: tag << 32 | number */
    uint64_t n_lost;     /* samples without room */
    uint64_t lost_bytes; /* their weight */
    int64_t now_bytes;   /* all heaps' malloc in use, fractions */
    int64_t peak_bytes;
    uint64_t peak_epoch;   /* raised at every new peak */
    uint64_t peak_time_ns; /* CLOCK_REALTIME of it */
};

struct cpprof__heap {
    struct cpprof__heap_head *head;
    struct cpprof__heap_block *blocks;
    struct cpprof__heap_bucket *buckets;
    /* Private. */
    uint8_t *filter;
    struct cpprof__tree *tree;
    void *live_index;
    void *bucket_index;
};
extern struct cpprof__heap cpprof__heap;

/* Of the running thread. */
struct cpprof__heap_self {
    int64_t left;    /* floor + bytes to the next sample */
    uint32_t exempt; /* > 0: in the profiler; nothing is sampled */
    uint32_t seeded;
    uint64_t random[2];
};
extern __thread struct cpprof__heap_self cpprof__heap_self;

/* Threads whose .left is below are due. A change of the rate raises it, which
 * makes every thread due at its next allocation: one load, no list of
 * threads. Arithmetic wraps. */
extern int64_t cpprof__heap_floor;

/* One byte for an address; the real one once the tables are there, until then
 * one page of zeros. */
extern uint8_t *cpprof__heap_filter;
extern uint64_t cpprof__heap_filter_mask;

/* Count n bytes; true: look closer, in cpprof__heap_sample(). */
static inline bool
cpprof__heap_due(size_t n)
{
    int64_t left = cpprof__heap_self.left - (int64_t)n;

    cpprof__heap_self.left = left;
    return __builtin_expect(left - load_relaxed(&cpprof__heap_floor) < 0, 0);
}

/* May address be a sampled block? */
static inline bool
cpprof__heap_may_be_sampled(const void *address)
{
    uint64_t at = ((uintptr_t)address >> 4) & cpprof__heap_filter_mask;

    return __builtin_expect(load_relaxed(&cpprof__heap_filter[at]) != 0, 0);
}

/*
 * After an allocation for which cpprof__heap_due() was true: sample it or only
 * draw anew. n is what was asked for; address NULL: the allocation failed, its
 * bytes are given back. Keeps errno. Safety: AS, lock-free.
 */
void
cpprof__heap_sample(const void *address, size_t n, uint16_t heap);

/* What a removed block was, to put it back when realloc fails. */
struct cpprof__heap_removed {
    struct cpprof__heap_block block; /* .address 0: there was none */
};

/* Before the real free, when the filter says so: take the block out of the
 * table if it is in it. Safety: AS, lock-free. */
bool
cpprof__heap_remove(const void *address, uint16_t heap,
                    struct cpprof__heap_removed *removed);
void
cpprof__heap_restore(const struct cpprof__heap_removed *removed);

/* The rate: returns the old one; negative reads. Safety: AS. */
int64_t
cpprof__heap_set_rate(int64_t bytes);

/* Bytes of the shared block, and of the private ones together. */
size_t
cpprof__heap_bytes(void);
size_t
cpprof__heap_private_bytes(void);

/* Use this zeroed memory. Outside handlers, once. */
void
cpprof__heap_make(void *block, void *private_memory, struct cpprof__tree *tree);

#endif
