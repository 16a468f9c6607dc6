/* SPDX-License-Identifier: MIT */
/*
 * Mixing of bits: for hash tables whose keys the process itself chooses, and
 * where two processes must compute the same hash. Keys that come from files go
 * through base/hash.h, whose hash depends on a secret. Handlers may call these
 * functions.
 */
#ifndef ARCH_MIX_H
#define ARCH_MIX_H

#include <stdint.h>

/* 2^64 divided by the golden ratio. Its multiples, modulo 2^64, lie as far
 * apart as can be, however many there are. */
#define CPPROF__GOLDEN 0x9e3779b97f4a7c15u

/* Each bit of the result depends on every bit of x (murmur3's finalizer). */
static inline uint64_t
cpprof__mix_u64(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdu;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

/* The quick one, of 1 to 64 bits (Fibonacci hashing): numbers that follow each
 * other, as addresses do, get different results. */
static inline uint64_t
cpprof__spread_u64(uint64_t x, unsigned bits)
{
    return x * CPPROF__GOLDEN >> (64 - bits);
}

#endif
