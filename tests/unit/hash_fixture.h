/* SPDX-License-Identifier: MIT */
/* What those know who want to put all entries of a hash table in one slot. */
#ifndef TESTS_HASH_FIXTURE_H
#define TESTS_HASH_FIXTURE_H

#include "base/hash.h"

#include <string.h>

static inline void
set_key(const uint64_t key[2])
{
    memcpy(cpprof__hash_key, key, sizeof cpprof__hash_key);
}

/* The number that cpprof__mix_u64() makes x of. */
static inline uint64_t
unmix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0x9cb4b2f8129337dbULL;
    x ^= x >> 33;
    x *= 0x4f74430c22a54005ULL;
    return x ^ x >> 33;
}

/* How far an entry lies from where it belongs, on average: how many slots a
 * search passes. */
static inline double
probes(const struct cpprof__index *index)
{
    size_t mask = index->capacity - 1, sum = 0, i;

    for (i = 0; i < index->capacity; i++)
        if (index->slots[i].value != CPPROF__INDEX_NONE)
            sum += (i - index->slots[i].hash) & mask;
    return (double)sum / (double)index->n;
}

#endif
