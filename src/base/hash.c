/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

uint64_t
cpprof__hash_bytes(const void *data, size_t n, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t h = seed ^ n * 0x9e3779b97f4a7c15ULL;
    uint64_t word;

    for (; n >= sizeof word; n -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        h = cpprof__hash_u64(h ^ word) * 0x9e3779b97f4a7c15ULL;
    }
    word = 0;
    if (n) /* no bytes may have no address */
        memcpy(&word, p, n);
    return cpprof__hash_u64(h ^ word);
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
        const struct cpprof__index_place *place = &index->places[i];

        if (place->value == CPPROF__INDEX_NONE)
            return CPPROF__INDEX_NONE;
        if (place->hash == tag && equal(ctx, place->value))
            return place->value;
    }
}

static void
put(struct cpprof__index *index, uint32_t tag, uint32_t value)
{
    size_t mask = index->capacity - 1;
    size_t i = tag & mask;

    while (index->places[i].value != CPPROF__INDEX_NONE)
        i = (i + 1) & mask;
    index->places[i].hash = tag;
    index->places[i].value = value;
    index->n++;
}

static bool
grow(struct cpprof__index *index)
{
    struct cpprof__index larger = {0};
    size_t i;

    larger.capacity = index->capacity ? index->capacity * 2 : 64;
    larger.places = malloc(larger.capacity * sizeof *larger.places);
    if (!larger.places)
        return false;
    memset(larger.places, 0xff, larger.capacity * sizeof *larger.places);
    for (i = 0; i < index->capacity; i++)
        if (index->places[i].value != CPPROF__INDEX_NONE)
            put(&larger, index->places[i].hash, index->places[i].value);
    free(index->places);
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
    free(index->places);
    memset(index, 0, sizeof *index);
}
