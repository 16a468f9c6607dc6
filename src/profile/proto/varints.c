/* SPDX-License-Identifier: MIT */
/*
 * Decodes runs of varints quickly. The length of a varint is known only from
 * its bytes, so a simple loop either mispredicts a branch or waits for each
 * load. Here eight bytes are loaded at once. Each byte without a continuation
 * bit ends a varint, and the first three varints are extracted side by side, so
 * the wait is paid once for three.
 */
#include "profile/proto/varints.h"

#include <string.h>

#define WORD      8
#define HIGH_BITS 0x8080808080808080ULL

/* The groups of seven bits of up to four bytes, moved together. */
static inline uint32_t
compact(uint64_t v)
{
    return (uint32_t)((v & 0x7f) | (v >> 1 & 0x3f80) | (v >> 2 & 0x1fc000) |
                      (v >> 3 & 0xfe00000));
}

/* The bits up to and including the lowest one of `stops`; all when 0. */
static inline uint64_t
through(uint64_t stops)
{
    return stops ^ (stops - 1);
}

/* One to three varints of the word; how many bytes they take. 0: none ends in
 * it, or one is too long. */
static inline unsigned
three(uint64_t word, uint32_t *out, unsigned *n)
{
    uint64_t one = ~word & HIGH_BITS;
    uint64_t two = one & (one - 1), three = two & (two - 1);
    uint64_t last = three ? three : two ? two : one;
    unsigned shift_two = (unsigned)__builtin_ctzll(one | 1ULL << 63) + 1;
    unsigned shift_three = (unsigned)__builtin_ctzll(two | 1ULL << 63) + 1;
    uint64_t a = word & through(one);
    uint64_t b = two ? (word & through(two)) >> shift_two : 0;
    uint64_t c = three ? (word & through(three)) >> shift_three : 0;

    if (!one || (a | b | c) >> 32)
        return 0;
    out[0] = compact(a);
    out[1] = compact(b);
    out[2] = compact(c);
    *n = 1 + (two != 0) + (three != 0);
    return (unsigned)__builtin_ctzll(last) / 8 + 1;
}

/* One varint within fewer than eight bytes; 0: there is none. */
static size_t
one_at_end(const uint8_t *data, size_t n, uint32_t *out)
{
    uint32_t value = 0;
    size_t i;

    for (i = 0; i < n && i < 4; i++) {
        value |= (uint32_t)(data[i] & 0x7f) << 7 * i;
        if (data[i] < 0x80) {
            *out = value;
            return i + 1;
        }
    }
    return 0;
}

size_t
cpprof__varints(const uint8_t *data, size_t n, uint32_t *out)
{
    const uint8_t *p = data, *end = data + n;
    uint32_t *next = out;

    while ((size_t)(end - p) >= WORD) {
        unsigned found = 0, used;
        uint64_t word;

        memcpy(&word, p, sizeof word);
        used = three(word, next, &found);
        if (!used)
            return SIZE_MAX;
        p += used;
        next += found;
    }
    while (p < end) {
        size_t used = one_at_end(p, (size_t)(end - p), next++);

        if (!used)
            return SIZE_MAX;
        p += used;
    }
    return (size_t)(next - out);
}
