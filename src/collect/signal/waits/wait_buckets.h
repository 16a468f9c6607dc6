/* SPDX-License-Identifier: MIT */
/*
 * How often and how long threads waited: sums by (profile, stack, label set),
 * which grow until their bucket is recycled. Counts are fractions, since a
 * sampled wait may stand for 12.3 waits.
 *
 * Head and buckets are one block of fixed layout without pointers, so that
 * another process can read a copy of it (mirror.h). It is made at the first
 * rate that is not 0.
 */
#ifndef COLLECT_SIGNAL_WAIT_BUCKETS_H
#define COLLECT_SIGNAL_WAIT_BUCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bound: 65 536 pairs of stack and labels, 2.5 MiB of addresses. What finds no
 * room is counted as lost. */
#define CPPROF__WAIT_BUCKETS (1u << 16)

/* Counts are in 1/1024ths. */
#define CPPROF__WAIT_FRACTION_BITS 10

enum cpprof__wait_profile {
    CPPROF__WAIT_BLOCK, /* where threads waited */
    CPPROF__WAIT_MUTEX, /* where what they waited for was given up */
    CPPROF__WAIT_PROFILES
};

struct cpprof__wait_bucket {
    uint32_t stack;   /* node of the tree */
    uint32_t labels;  /* cpprof__label_set_number(), or 0 */
    uint32_t profile; /* enum cpprof__wait_profile */
    uint32_t pad;
    uint64_t count; /* estimates; the count in fractions */
    uint64_t delay_ns;
};

struct cpprof__waits_head {
    char magic[8];
    uint32_t n_buckets; /* the first that was never given out, or 0 */
    uint32_t pad;
    int64_t block_rate;     /* as they are now */
    int64_t mutex_fraction; /* likewise */
    /* By profile: without room for the stack. */
    uint64_t lost_count[CPPROF__WAIT_PROFILES];
    uint64_t lost_ns[CPPROF__WAIT_PROFILES];
};

struct cpprof__waits {
    struct cpprof__waits_head *head;
    struct cpprof__wait_bucket *buckets; /* CPPROF__WAIT_BUCKETS */
};

#pragma GCC visibility push(hidden)
extern struct cpprof__waits cpprof__waits; /* this process's own; may be NULL */
#pragma GCC visibility pop

/* Make the table; false: there is no memory. Safety: AS, lock-free. */
bool
cpprof__waits_reserve(void);

/* Bytes of the block. */
size_t
cpprof__waits_bytes(void);

/* Add to the sums of a stack; stack 0: to what is lost. Returns the number of
 * its bucket, or 0. Safety: AS, lock-free. */
uint32_t
cpprof__wait_count(enum cpprof__wait_profile profile, uint32_t stack,
                   uint64_t count, uint64_t delay_ns);

/* Add to the sums of the bucket that has this number. */
void
cpprof__wait_count_more(uint32_t bucket, uint64_t count, uint64_t delay_ns);

/*
 * Reading, while others add, here or in a copy of n bytes. Nothing that is
 * read is trusted.
 */
bool
cpprof__waits_open(struct cpprof__waits *waits, void *block, size_t n);

/* Numbers from 1 to below this may be buckets. */
uint32_t
cpprof__waits_n_buckets(const struct cpprof__waits *waits);

/* A copy of a bucket; false: nothing was ever counted there. */
bool
cpprof__waits_read(const struct cpprof__waits *waits, uint32_t number,
                   struct cpprof__wait_bucket *bucket);

/* Has anything been counted in this process? Safety: AS. */
bool
cpprof__waits_have_any(enum cpprof__wait_profile profile);

/* In a child made by fork: nobody has waited yet. */
void
cpprof__wait_buckets_forked(void);

#endif
