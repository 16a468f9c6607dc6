/* SPDX-License-Identifier: MIT */
/*
 * An index that only grows: from the hash of a key to a number. Levels of
 * 4096 slots, four times as many in each that follows; in every level a hash
 * has a window of 8 slots, half a cache line. Slots are filled in the order in
 * which they are searched, by compare-and-swap, so a search ends at the first
 * empty slot. A small table touches the first level only, 16 KiB.
 *
 * A slot holds a number (0: empty) and, above it, bits of the hash, so that
 * others' keys are hardly ever looked at.
 */
#ifndef COLLECT_SIGNAL_WINDOW_INDEX_H
#define COLLECT_SIGNAL_WINDOW_INDEX_H

#include "arch/atomic.h"

#include <stddef.h>
#include <stdint.h>

#define WINDOW_SLOTS 8u

/* Slots of the first n levels together. */
#define WINDOW_INDEX_SLOTS(n) (4096u * ((1u << 2 * (n)) - 1) / 3)

static inline uint64_t
window_mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

/* The i-th slot for hash: level i / 8. */
static inline uint32_t *
window_slot(uint32_t *index, uint64_t hash, unsigned i)
{
    unsigned level = i / WINDOW_SLOTS;
    uint64_t n_windows = 512u << 2 * level;
    uint64_t window = (hash >> 3 * level) & (n_windows - 1);

    return index + WINDOW_INDEX_SLOTS(level) + window * WINDOW_SLOTS +
           i % WINDOW_SLOTS;
}

/* The bits of the hash above a number of `bits` bits. */
static inline uint32_t
window_tag(uint64_t hash, unsigned bits)
{
    return (uint32_t)(hash >> 32) >> bits << bits;
}

#endif
