/* SPDX-License-Identifier: MIT */
/*
 * Hashing, and the one index that tables are built on: an open-addressing map
 * from a hash to a 32-bit number, which the caller compares with what it
 * stores under that number.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A well-mixed 64-bit hash of a number (murmur3's finalizer). */
static inline uint64_t
cpprof__hash_u64(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdULL;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ULL;
    return x ^ x >> 33;
}

/* Of bytes, not keyed: for tables, not against an adversary who aims at one. */
uint64_t
cpprof__hash_bytes(const void *data, size_t n, uint64_t seed);

/*
 * Invariants: capacity is 0 or a power of two; at most 3/4 of it is in use;
 * an empty place holds value CPPROF__INDEX_NONE.
 */
#define CPPROF__INDEX_NONE UINT32_MAX

struct cpprof__index {
    struct cpprof__index_place {
        uint32_t hash; /* folded to 32 bits: chooses the place, skips most
                        * comparisons, and is enough to grow the table */
        uint32_t value;
    } * places;
    size_t capacity;
    size_t n;
};

/*
 * Find the value whose hash is `hash` and for which equal(ctx, value) holds;
 * CPPROF__INDEX_NONE if there is none.
 */
uint32_t
cpprof__index_find(const struct cpprof__index *index, uint64_t hash,
                   bool (*equal)(void *ctx, uint32_t value), void *ctx);
/* Add a value that is not there yet; false when out of memory. */
bool
cpprof__index_add(struct cpprof__index *index, uint64_t hash, uint32_t value);
void
cpprof__index_free(struct cpprof__index *index);

#endif
