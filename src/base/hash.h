/* SPDX-License-Identifier: MIT */
/*
 * Hashing, and the one index that tables are built on: an open-addressing map
 * from a hash to a 32-bit number, which the caller compares with what it stores
 * under that number.
 *
 * Input files may be hostile. So hashes depend on a key that is random for each
 * process, and whoever does not know the key cannot choose keys that collide.
 * Nothing that is written may depend on a hash. Idea of the mixing: wyhash
 * (Wang Yi): the two halves of a 128-bit product, with a secret in both
 * factors.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "arch/mix.h"
#include "base/buffer.h"

/*
 * The key: two words, 0 until hash_key_make() has run. Any thread may call that
 * at any time, because all compute the same key. Tests set words of their own.
 */
extern uint64_t cpprof__hash_key[2];

void
cpprof__hash_key_make(void);

static inline uint64_t
cpprof__hash_key_word(unsigned i)
{
    if (!__atomic_load_n(&cpprof__hash_key[1], __ATOMIC_ACQUIRE))
        cpprof__hash_key_make();
    return __atomic_load_n(&cpprof__hash_key[i], __ATOMIC_RELAXED);
}

/* Both halves of a product. */
static inline uint64_t
cpprof__hash_multiply(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Go on with one more number of a record; hash_u64() ends it. A plain sum or
 * exclusive or would collide for somebody who chooses both numbers. */
static inline uint64_t
cpprof__hash_add(uint64_t hash, uint64_t x)
{
    return cpprof__hash_multiply(hash ^ cpprof__hash_key_word(0),
                                 x ^ cpprof__hash_key_word(1));
}

/* Of a number. */
static inline uint64_t
cpprof__hash_u64(uint64_t x)
{
    /* Multiplied once more by a constant: with an unlucky key, neighbours would
     * lie in steps that divide the size of a table. */
    return cpprof__hash_multiply(cpprof__hash_add(0, x), CPPROF__GOLDEN);
}

/* Of bytes. */
uint64_t
cpprof__hash_bytes(const void *data, size_t n, uint64_t seed);

/*
 * Invariants: capacity is 0 or a power of two; at most 3/4 of it is in use;
 * an empty slot holds value CPPROF__INDEX_NONE.
 */
#define CPPROF__INDEX_NONE UINT32_MAX

struct cpprof__index {
    struct cpprof__index_slot {
        uint32_t hash; /* 32 bits of it: they choose the slot, spare most
                          comparisons, and suffice to grow the table */
        uint32_t value;
    } * slots;
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
/* Prefetch the slot that a find() of that hash looks at first. */
static inline void
cpprof__index_prefetch(const struct cpprof__index *index, uint64_t hash)
{
    if (index->capacity)
        __builtin_prefetch(&index->slots[(uint32_t)(hash ^ hash >> 32) &
                                         (index->capacity - 1)]);
}

/* Add a value that is not there yet; false when out of memory. */
bool
cpprof__index_add(struct cpprof__index *index, uint64_t hash, uint32_t value);
void
cpprof__index_free(struct cpprof__index *index);

/*
 * Entries of n_entry bytes, by number, and an index over them. Each begins with
 * its key: n_key bytes, all of which count. Zero bytes is a valid, empty table.
 */
struct cpprof__table {
    struct cpprof__buffer entries;
    struct cpprof__index index;
};

/* The number of the entry with a key; CPPROF__INDEX_NONE: there is none. */
uint32_t
cpprof__table_find(const struct cpprof__table *table, const void *key,
                   size_t n_key, size_t n_entry);

/* The number of the entry with the key of this one, which is added if there is
 * none: *added. CPPROF__INDEX_NONE: no memory; the table may be empty then. */
uint32_t
cpprof__table_add(struct cpprof__table *table, const void *entry, size_t n_key,
                  size_t n_entry, bool *added);

/* The same for an entry that is not there, and is found by other means than a
 * key: its own hash, and cpprof__index_find(). */
uint32_t
cpprof__table_append(struct cpprof__table *table, uint64_t hash,
                     const void *entry, size_t n_entry);
void
cpprof__table_free(struct cpprof__table *table);

#endif
