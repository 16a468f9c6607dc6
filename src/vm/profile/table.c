/* SPDX-License-Identifier: MIT */
/*
 * Numbers of functions and locations: an index over an array of keys, twice.
 *
 * A function that is gone is taken out of the index only: its number stays
 * valid for samples that already have it, and the same address may get a new
 * number. A table that is full is cleared, and everything is told anew.
 */
#include "vm/profile/table.h"

#include <string.h>

struct lookup {
    const struct cpprof__buffer *keys;
    const void *key;
    size_t n_bytes;
};

static bool
equal(void *ctx, uint32_t value)
{
    const struct lookup *l = ctx;

    return memcmp(l->keys->data + value * l->n_bytes, l->key, l->n_bytes) == 0;
}

static uint64_t
hash_of_function(const struct cpprof__vm_function_key *key)
{
    return cpprof__hash_u64(
        cpprof__hash_add((uintptr_t)key->vm, (uintptr_t)key->function));
}

static uint64_t
hash_of_location(const struct cpprof__vm_location_key *key)
{
    return cpprof__hash_u64(cpprof__hash_add(
        key->function, (uint64_t)key->pc << 32 | (uint32_t)key->line));
}

uint32_t
cpprof__vm_table_function(const struct cpprof__vm_table *table,
                          const struct cpprof__vm_function_key *key)
{
    struct lookup l = {&table->functions, key, sizeof *key};

    return cpprof__index_find(&table->function_index, hash_of_function(key),
                              equal, &l);
}

uint32_t
cpprof__vm_table_location(const struct cpprof__vm_table *table,
                          const struct cpprof__vm_location_key *key)
{
    struct lookup l = {&table->locations, key, sizeof *key};

    return cpprof__index_find(&table->location_index, hash_of_location(key),
                              equal, &l);
}

static bool
add(struct cpprof__buffer *keys, struct cpprof__index *index, uint64_t hash,
    const struct lookup *l)
{
    size_t n = keys->n / l->n_bytes;

    cpprof__buffer_append(keys, l->key, l->n_bytes);
    return !keys->failed && cpprof__index_add(index, hash, (uint32_t)n);
}

bool
cpprof__vm_table_add_function(struct cpprof__vm_table *table,
                              const struct cpprof__vm_function_key *key)
{
    const struct lookup l = {NULL, key, sizeof *key};

    return add(&table->functions, &table->function_index, hash_of_function(key),
               &l);
}

bool
cpprof__vm_table_add_location(struct cpprof__vm_table *table,
                              const struct cpprof__vm_location_key *key)
{
    const struct lookup l = {NULL, key, sizeof *key};

    return add(&table->locations, &table->location_index, hash_of_location(key),
               &l);
}

void
cpprof__vm_table_gone(struct cpprof__vm_table *table,
                      const struct cpprof__vm_function_key *key)
{
    uint32_t found = cpprof__vm_table_function(table, key);

    if (found != CPPROF__VM_NONE)
        memset(table->functions.data + found * sizeof *key, 0, sizeof *key);
}

bool
cpprof__vm_table_is_full(const struct cpprof__vm_table *table)
{
    return table->functions.n / sizeof(struct cpprof__vm_function_key) >=
               CPPROF__VM_FUNCTIONS_MAX ||
           table->locations.n / sizeof(struct cpprof__vm_location_key) >=
               CPPROF__VM_LOCATIONS_MAX;
}

void
cpprof__vm_table_clear(struct cpprof__vm_table *table)
{
    cpprof__buffer_free(&table->functions);
    cpprof__buffer_free(&table->locations);
    cpprof__index_free(&table->function_index);
    cpprof__index_free(&table->location_index);
    table->generation++;
}
