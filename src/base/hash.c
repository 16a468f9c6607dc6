/* SPDX-License-Identifier: MIT */
/*
 * Hashes keyed per process, and an index: a hash table of 32-bit numbers whose
 * keys the caller keeps.
 *
 * The key makes collisions impossible to choose from outside, so that a
 * hostile profile cannot turn lookups into searches. An index stores for each
 * number 32 bits of its hash; the caller's `equal` is asked only where these
 * agree. It uses open addressing with linear probing, and grows when three
 * quarters are in use.
 *
 * Invariants: the key is never 0 in either word and never changes once its
 * second word is set; the capacity of an index is 0 or a power of two, and
 * there is always an empty slot, so a search ends.
 */
#include "base/hash.h"

#include "own/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

uint64_t cpprof__hash_key[2];

/*
 * The kernel gives each new program 16 random bytes for libc (AT_RANDOM).
 * Reading them needs no system call that could fail or block, and every thread
 * finds the same ones. They also protect the stack; so the key is a one-way
 * function of them, and is never written anywhere.
 */
void
cpprof__hash_key_make(void)
{
    const void *random = (const void *)getauxval(AT_RANDOM);
    uint64_t words[2] = {(uintptr_t)&cpprof__hash_key, (uintptr_t)&getauxval};

    if (random)
        memcpy(words, random, sizeof words);
    /* Odd, and so not 0: a product with 0 is no hash. */
    words[0] = cpprof__mix_u64(words[0] + cpprof__mix_u64(words[1])) | 1;
    words[1] = cpprof__mix_u64(words[1] + words[0]) | 1;
    __atomic_store_n(&cpprof__hash_key[0], words[0], __ATOMIC_RELAXED);
    /* Stored last: a reader that sees it sees both words. */
    __atomic_store_n(&cpprof__hash_key[1], words[1], __ATOMIC_RELEASE);
}

static uint64_t
load_u64(const unsigned char *p)
{
    uint64_t word;

    memcpy(&word, p, sizeof word);
    return word;
}

static uint64_t
load_u32(const unsigned char *p)
{
    uint32_t word;

    memcpy(&word, p, sizeof word);
    return word;
}

/* The last 16 bytes or fewer, as two words. The words of a short text overlap;
 * its length, which is hashed too, says by how much. */
static void
load_tail(const unsigned char *p, size_t n, uint64_t words[2])
{
    words[0] = words[1] = 0;
    if (n >= 8) {
        words[0] = load_u64(p);
        words[1] = load_u64(p + n - 8);
    } else if (n >= 4) {
        words[0] = load_u32(p);
        words[1] = load_u32(p + n - 4);
    } else if (n) { /* no bytes may have no address */
        words[0] = (uint64_t)p[0] << 16 | (uint64_t)p[n / 2] << 8 | p[n - 1];
    }
}

uint64_t
cpprof__hash_bytes(const void *data, size_t n, uint64_t seed)
{
    uint64_t secret = cpprof__hash_key_word(1);
    uint64_t h = seed ^ cpprof__hash_key_word(0);
    const unsigned char *p = data;
    uint64_t tail[2];
    size_t left = n;

    for (; left > 16; left -= 16, p += 16)
        h = cpprof__hash_multiply(load_u64(p) ^ secret, load_u64(p + 8) ^ h);
    load_tail(p, left, tail);
    h = cpprof__hash_multiply(tail[0] ^ secret, tail[1] ^ h);
    return cpprof__hash_multiply(h ^ secret, n ^ CPPROF__GOLDEN);
}

static uint32_t
fold(uint64_t hash)
{
    return (uint32_t)(hash ^ hash >> 32);
}

uint32_t
cpprof__index_find(const struct cpprof__index *index, uint64_t hash,
                   bool (*equal)(void *ctx, uint32_t value), void *ctx)
{
    uint32_t tag = fold(hash);
    size_t mask = index->capacity - 1;
    size_t i;

    if (!index->capacity)
        return CPPROF__INDEX_NONE;
    for (i = tag & mask;; i = (i + 1) & mask) {
        const struct cpprof__index_slot *slot = &index->slots[i];

        if (slot->value == CPPROF__INDEX_NONE)
            return CPPROF__INDEX_NONE;
        if (slot->hash == tag && equal(ctx, slot->value))
            return slot->value;
    }
}

static void
put(struct cpprof__index *index, uint32_t tag, uint32_t value)
{
    size_t mask = index->capacity - 1;
    size_t i = tag & mask;

    while (index->slots[i].value != CPPROF__INDEX_NONE)
        i = (i + 1) & mask;
    index->slots[i].hash = tag;
    index->slots[i].value = value;
    index->n++;
}

static bool
grow(struct cpprof__index *index)
{
    struct cpprof__index larger = {0};
    size_t i;

    larger.capacity = index->capacity ? index->capacity * 2 : 64;
    larger.slots = cpprof__malloc(larger.capacity * sizeof *larger.slots);
    if (!larger.slots)
        return false;
    memset(larger.slots, 0xff, larger.capacity * sizeof *larger.slots);
    for (i = 0; i < index->capacity; i++)
        if (index->slots[i].value != CPPROF__INDEX_NONE)
            put(&larger, index->slots[i].hash, index->slots[i].value);
    cpprof__free(index->slots);
    *index = larger;
    return true;
}

bool
cpprof__index_add(struct cpprof__index *index, uint64_t hash, uint32_t value)
{
    if (index->n >= index->capacity / 4 * 3 && !grow(index))
        return false;
    put(index, fold(hash), value);
    return true;
}

void
cpprof__index_free(struct cpprof__index *index)
{
    cpprof__free(index->slots);
    memset(index, 0, sizeof *index);
}

/* ------------------------------------------------------------- tables ---- */

struct wanted {
    const struct cpprof__table *table;
    const void *key;
    size_t n_key, n_entry;
};

static bool
has_key(void *ctx, uint32_t number)
{
    const struct wanted *w = ctx;
    const uint8_t *entry = w->table->entries.data + number * w->n_entry;

    return memcmp(entry, w->key, w->n_key) == 0;
}

static uint32_t
find(const struct cpprof__table *table, uint64_t hash, const void *key,
     size_t n_key, size_t n_entry)
{
    struct wanted wanted = {table, key, n_key, n_entry};

    return cpprof__index_find(&table->index, hash, has_key, &wanted);
}

uint32_t
cpprof__table_find(const struct cpprof__table *table, const void *key,
                   size_t n_key, size_t n_entry)
{
    return find(table, cpprof__hash_bytes(key, n_key, 0), key, n_key, n_entry);
}

uint32_t
cpprof__table_append(struct cpprof__table *table, uint64_t hash,
                     const void *entry, size_t n_entry)
{
    size_t n = table->entries.n / n_entry;

    if (!cpprof__buffer_reserve(&table->entries, n_entry))
        cpprof__index_free(&table->index); /* the entries are gone */
    if (table->entries.failed || n >= CPPROF__INDEX_NONE ||
        !cpprof__index_add(&table->index, hash, (uint32_t)n))
        return CPPROF__INDEX_NONE;
    cpprof__buffer_append(&table->entries, entry, n_entry);
    return (uint32_t)n;
}

uint32_t
cpprof__table_add(struct cpprof__table *table, const void *entry, size_t n_key,
                  size_t n_entry, bool *added)
{
    uint64_t hash = cpprof__hash_bytes(entry, n_key, 0);
    uint32_t found = find(table, hash, entry, n_key, n_entry);

    *added = found == CPPROF__INDEX_NONE;
    if (*added)
        found = cpprof__table_append(table, hash, entry, n_entry);
    *added &= found != CPPROF__INDEX_NONE;
    return found;
}

void
cpprof__table_free(struct cpprof__table *table)
{
    cpprof__buffer_free(&table->entries);
    cpprof__index_free(&table->index);
}
