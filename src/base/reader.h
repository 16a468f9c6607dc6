/* SPDX-License-Identifier: MIT */
/*
 * The only way untrusted bytes are read: a bounded, sticky reader. A read past
 * the end gives 0 and sets `bad`; the caller checks `bad` once per record.
 */
#ifndef BASE_READER_H
#define BASE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cpprof__reader {
    const uint8_t *next;
    const uint8_t *end;
    bool bad;
};

static inline struct cpprof__reader
cpprof__reader(const void *data, size_t n)
{
    const uint8_t *p = data;

    return (struct cpprof__reader){p, n ? p + n : p, false};
}

static inline size_t
cpprof__reader_left(const struct cpprof__reader *r)
{
    return (size_t)(r->end - r->next);
}

static inline bool
cpprof__reader_need(struct cpprof__reader *r, size_t n)
{
    if (!r->bad && n <= cpprof__reader_left(r))
        return true;
    r->bad = true;
    r->next = r->end;
    return false;
}

/* n bytes, or NULL and bad. */
static inline const uint8_t *
cpprof__read_bytes(struct cpprof__reader *r, size_t n)
{
    const uint8_t *p = r->next;

    if (!cpprof__reader_need(r, n))
        return NULL;
    r->next += n;
    return p;
}

#define CPPROF__READ(name, type)                                               \
    static inline type cpprof__read_##name(struct cpprof__reader *r)           \
    {                                                                          \
        type v = 0;                                                            \
                                                                               \
        if (cpprof__reader_need(r, sizeof v)) {                                \
            memcpy(&v, r->next, sizeof v);                                     \
            r->next += sizeof v;                                               \
        }                                                                      \
        return v;                                                              \
    }
CPPROF__READ(u8, uint8_t)
CPPROF__READ(u16, uint16_t)
CPPROF__READ(u32, uint32_t)
CPPROF__READ(u64, uint64_t)
#undef CPPROF__READ

/* A base-128 varint of at most 10 bytes; 0 and bad otherwise. */
static inline uint64_t
cpprof__read_varint(struct cpprof__reader *r)
{
    uint64_t v = 0;
    unsigned shift;

    if (r->next < r->end && *r->next < 0x80)
        return *r->next++;
    for (shift = 0; shift < 70 && r->next < r->end; shift += 7) {
        uint8_t byte = *r->next++;

        v |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
        if (byte < 0x80)
            return v;
    }
    r->bad = true;
    r->next = r->end;
    return 0;
}

#endif
