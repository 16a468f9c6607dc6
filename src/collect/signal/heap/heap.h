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
 * One concept per file: heap.c decides and calls the rest, heap_random draws
 * and weighs, hook_stack walks, heap_buckets sums up, heap_live finds a block
 * by its address, exempt finds out when a thread has left an exempt frame,
 * heap_read reads the tables while they change.
 */
#ifndef COLLECT_SIGNAL_HEAP_H
#define COLLECT_SIGNAL_HEAP_H

#include "arch/atomic.h"
#include "collect/signal/tables/stack_tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPPROF__HEAP_RATE 524288

/* Higher rates are as this one, 1 TiB; so that no single sample overflows a
 * sum. Sums wrap at 2^54 bytes. */
#define CPPROF__HEAP_RATE_MAX ((int64_t)1 << 40)

/* Larger blocks, of which there are none, are counted as this large. */
#define CPPROF__HEAP_BYTES_MAX ((uint64_t)1 << 47)

/* Bounds: live sampled blocks (128 MiB of addresses, touched as needed), and
 * buckets. What finds no room is counted as lost, and the weight of it is said
 * in the profile. */
#define CPPROF__HEAP_LIVE    (1u << 22)
#define CPPROF__HEAP_BUCKETS (1u << 19)

/* Heaps: malloc, which is 0, and the program's own. */
#define CPPROF__HEAP_HEAPS 64

/* Bytes of the filter, a power of two: 4 GiB of addresses before it begins
 * anew. Pages without a sampled block stay the kernel's page of zeros. */
#define CPPROF__HEAP_FILTER (1u << 22)

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
    char magic[8];
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
    struct cpprof__heap_peak peaks[CPPROF__HEAP_HEAPS];
};

struct cpprof__heap {
    struct cpprof__heap_head *head;
    struct cpprof__heap_block *blocks;
    struct cpprof__heap_bucket *buckets;
    /* Private. */
    struct cpprof__tree *tree;
    void *live_index;
    uint32_t *bucket_index;
    struct cpprof__entries entries; /* of buckets */
    bool gives_up_stacks;           /* recycling */
};

/* Of the running thread. */
struct cpprof__hook_self {
    int64_t left; /* floor + bytes to the next sample */
    /* Not 0: the thread is exempt and nothing is sampled. The value is the
     * frame that made it exempt (runtime/exempt.h), plus 1 for each time it was
     * raised since. */
    uintptr_t exempt;
    uintptr_t exempt_return; /* where that frame returns to */
    int64_t floor;           /* for which .left was drawn */
    bool at_point;   /* at .left is a sample; else it is drawn there anew */
    int64_t rate;    /* with which it was drawn */
    uint64_t random; /* 0: not seeded */
    /* The thread's stack: readable from the stack pointer up as long as the
     * thread lives; 0, 0: not known. See heap/heap_stacks.h. */
    uintptr_t stack_lo;
    uintptr_t stack_hi;
};

#pragma GCC visibility push(hidden)
extern struct cpprof__heap cpprof__heap;
extern __thread struct cpprof__hook_self cpprof__hook_self;

/* A thread whose .left is below this is due. A change of the rate raises it, so
 * that every thread is due at its next allocation. That costs one load and
 * needs no list of threads. It is far below all of them until the tables are
 * made. Arithmetic wraps. */
extern int64_t cpprof__heap_floor;

/* CPPROF__HEAP_FILTER bytes: how many sampled blocks have an address that falls
 * here; 255: many. NULL: nothing was ever sampled. */
extern uint8_t *cpprof__heap_filter;

/* Are buckets kept apart by the thread's labels? Set by the first request for
 * labels. */
extern uint32_t cpprof__wants_labels;
#pragma GCC visibility pop

/*
 * On every function that is between the program's call and the walk of the
 * stack: leading frames in this section are ours, and are not in the stack. Not
 * to be used on what may be inlined elsewhere.
 */
#define CPPROF__HOOK __attribute__((section("cpprof_hooks"), noinline))

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

/* One byte for each KiB of addresses. At one sample in 512 KiB few of them are
 * not 0, and the bytes of a whole heap stay in the cache. */
/*
 * Has the thread left the exempt frame without its end, by siglongjmp out of a
 * handler, an exception or a cancellation? Then the exemption ends, and what
 * the frame held is released. `frame` is that of the caller.
 */
bool
cpprof__exempt_was_abandoned(uintptr_t frame);

/* Is the thread exempt? */
static inline bool
cpprof__is_exempt(uintptr_t frame)
{
    return cpprof__hook_self.exempt && !cpprof__exempt_was_abandoned(frame);
}

/* Where a frame returns to is beside the address of its caller's frame, on
 * each of our architectures. */
static inline uintptr_t *
cpprof__heap_return_of(uintptr_t frame)
{
    return (uintptr_t *)frame + 1;
}

/* Linkers make an instruction that sets no flags of the addition that makes the
 * address of a thread-local variable, after which the sanitizer asks whether it
 * was 0: a false alarm, also where the function was put into its caller. */
#ifdef CPPROF_CHECKED
#define CPPROF__THREAD_LOCAL                                                   \
    static __attribute__((no_sanitize("null"), noinline, unused))
#else
#define CPPROF__THREAD_LOCAL static inline
#endif

/* What a thread was before it became exempt. */
struct cpprof__exempt {
    uintptr_t exempt;
    uintptr_t exempt_return;
};

/* A handler that comes in between, and is exempt itself for a while, leaves
 * both as they were. */
CPPROF__THREAD_LOCAL struct cpprof__exempt
cpprof__exempt_begin(uintptr_t frame)
{
    struct cpprof__hook_self *self = &cpprof__hook_self;
    struct cpprof__exempt before = {0, self->exempt_return};

    if (cpprof__is_exempt(frame)) {
        before.exempt = self->exempt;
        return before;
    }
    self->exempt_return = *cpprof__heap_return_of(frame);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->exempt = frame;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return before;
}

CPPROF__THREAD_LOCAL void
cpprof__exempt_end(struct cpprof__exempt *before)
{
    struct cpprof__hook_self *self = &cpprof__hook_self;

    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->exempt = before->exempt;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->exempt_return = before->exempt_return;
}

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

/*
 * After an allocation for which cpprof__heap_due() was true: sample it or only
 * draw anew. n is what was asked for; address NULL: the allocation failed, and
 * is not sampled. Calls nothing outside of this folder; keeps errno. A stack
 * that did not end at its root has a frame of our own
 * (collect/encode/builder.h) at its root side. Safety: AS, lock-free.
 */
void
cpprof__heap_sample(const void *address, size_t n, uint16_t heap);

/* The same for an allocator of the program's own, which reports a call only
 * afterwards. It may have freed memory that an interpreter still uses, so only
 * interpreters that can be asked in a handler are asked for their frames. */
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

/* Or, instead, as another block of the same stack and weight. */
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

/* Make the tables, whatever the rate is; false: there is no memory for them, or
 * .tree is not set. Safety: AS. */
bool
cpprof__heap_reserve(void);

/* Bytes of the block that can be copied, and of the private ones together. */
size_t
cpprof__heap_bytes(void);
size_t
cpprof__heap_private_bytes(void);

/* Use this zeroed memory, both aligned to a page, and sample from now on, at
 * the rate that was set. Once. */
void
cpprof__heap_make(void *block, void *private_memory, struct cpprof__tree *tree);

/* In a child made by fork, by the thread that goes on: gives back what the
 * other threads held, and draws anew, so that parent and child do not sample
 * the same. Not needed for correctness. Safety: AS. */
void
cpprof__heap_forked(void);

#endif
