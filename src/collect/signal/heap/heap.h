/* SPDX-License-Identifier: MIT */
/*
 * What runs inside malloc and free: which allocation is sampled, and the tables
 * of what was.
 *
 * Each thread counts down the bytes to its next sample, exponentially
 * distributed with the mean `rate`; so every byte is equally likely to be
 * sampled, and a block of n bytes with probability p = 1 - exp(-n / rate). A
 * sampled block stands for 1 / p blocks of its size (Horvitz and Thompson
 * 1952); that weight is stored with the block, so nothing depends on what the
 * rate is later, and sizes may be mixed on one stack. A block of no bytes is
 * taken as one of one byte where it is decided whether to sample it.
 *
 * free() first looks at a filter: one byte for each range of addresses, which
 * counts the sampled blocks there. Only if that is not 0 it searches the exact
 * table. Whoever frees a block takes its entry out before the real free. An
 * address has one owner at a time, so two entries of one address never exist
 * together and no lock is needed.
 *
 * What is in use is the sum over the live entries, and is right by
 * construction; what was ever allocated is summed up in buckets, one for each
 * (stack, size class, label set, heap).
 *
 * One concept per file: heap.c decides and calls the rest; heap_tables tells
 * what the tables are, and reads them while they change; heap_random draws and
 * weighs, hook_stack walks, heap_buckets sums up, heap_live finds a block by
 * its address; exempt is what a thread knows of itself, and finds out when it
 * has left an exempt frame.
 */
#ifndef COLLECT_SIGNAL_HEAP_H
#define COLLECT_SIGNAL_HEAP_H

#include "arch/atomic.h"
#include "collect/signal/heap/exempt.h"
#include "collect/signal/heap/heap_live.h"
#include "collect/signal/heap/heap_tables.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPPROF__HEAP_RATE 524288

/* Higher rates are as this one, 1 TiB; so that no single sample overflows a
 * sum. Sums wrap at 2^54 bytes. */
#define CPPROF__HEAP_RATE_MAX ((int64_t)1 << 40)

/* Larger blocks, of which there are none, are counted as this large. */
#define CPPROF__HEAP_BYTES_MAX ((uint64_t)1 << 47)

#pragma GCC visibility push(hidden)
/* A thread whose .left is below this is due. A change of the rate raises it, so
 * that every thread is due at its next allocation. That costs one load and
 * needs no list of threads. It is far below all of them until the tables are
 * made. Arithmetic wraps. */
extern int64_t cpprof__heap_floor;
#pragma GCC visibility pop

/*
 * Count n bytes; true: look closer, in cpprof__heap_sample(). Also true for 0
 * and for more than a count-down can bear, which go without counting here.
 */
static inline bool
cpprof__heap_due(size_t n)
{
    uint64_t left = (uint64_t)cpprof__hook_self.left - n;
    uint64_t beyond = left - (uint64_t)load_relaxed(&cpprof__heap_floor);

    cpprof__hook_self.left = (int64_t)left;
    return __builtin_expect(((beyond | (n - 1)) >> 62) != 0, 0);
}

/*
 * After an allocation for which cpprof__heap_due() was true: sample it or only
 * draw anew. n is what was asked for; address NULL: the allocation failed, and
 * is not sampled. Calls nothing outside of this folder; keeps errno. A stack
 * that did not end at its root has a frame of our own
 * (collect/encode/builder.h) at its root side. Safety: AS, lock-free.
 */
void
cpprof__heap_sample(const void *address, size_t n, uint16_t heap);

/* Sample an allocation that the program reports, of an allocator of its own. It
 * reports a call only afterwards. It may have freed memory that an interpreter
 * still uses, so only interpreters that can be asked in a handler are asked for
 * their frames. */
void
cpprof__heap_sample_anywhere(const void *address, size_t n, uint16_t heap);

/* The same in two parts, around a realloc, which may move the stack of the
 * interpreter that calls it: the first of them asks. */
struct cpprof__heap_ahead {
    int64_t rate; /* 0: it is not sampled */
    uint32_t stack;
};
void
cpprof__heap_sample_begin(struct cpprof__heap_ahead *ahead, size_t n);
void
cpprof__heap_sample_end(const struct cpprof__heap_ahead *ahead,
                        const void *address, size_t n);

/* What a removed block was, to put it back when realloc fails. */
struct cpprof__heap_removed {
    struct cpprof__heap_block block; /* .address 0: there was none */
};

/* Before the real free, when the filter says so: take the block out of the
 * table if it is in it. removed may be NULL. Safety: AS, lock-free. */
bool
cpprof__heap_remove(const void *address, uint16_t heap,
                    struct cpprof__heap_removed *removed);
void
cpprof__heap_restore(const struct cpprof__heap_removed *removed);

/* Put it back as another block, of the same stack and weight. */
void
cpprof__heap_resize(const struct cpprof__heap_removed *removed,
                    const void *address, size_t n);

/* If set, called after the rate changed: src/interpose takes its hooks out of
 * the way while nothing is sampled. */
extern void (*cpprof__heap_rate_changed)(void);

/* The rate: returns the old one; negative reads. The first one that is not 0
 * makes the tables, when .tree is set; until then it is only noted. Safety: AS.
 */
int64_t
cpprof__heap_set_rate(int64_t bytes);

/* Make the tables, whatever the rate is, with room for the live blocks that are
 * likely at it, or more room; false: there is no memory for them, or .tree is
 * not set. Safety: AS. */
bool
cpprof__heap_reserve(void);

/* Use this zeroed memory, both aligned to a page, and sample from now on, at
 * the rate that was set. `live` bounds the numbers of blocks. Once. */
void
cpprof__heap_make(void *block, void *private_memory, struct cpprof__tree *tree,
                  uint32_t live);

/* Forget all blocks and sums, while the rate is 0; the profile says from when
 * on it is. What a thread is just adding may stay. Not in handlers. */
void
cpprof__heap_begin_anew(void);

/* In a child made by fork, by the thread that goes on: gives back what the
 * other threads held, and draws anew, so that parent and child do not sample
 * the same. Not needed for correctness. Safety: AS. */
void
cpprof__heap_forked(void);

#endif
