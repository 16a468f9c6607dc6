/* SPDX-License-Identifier: MIT */
#include "vm/profile/table.h"

#include <string.h>

struct lookup {
    const struct cpprof__buffer *keys;
    const void *key;
    size_t n_bytes;
};

static bool
is_equal(void *ctx, uint32_t number)
{
    const struct lookup *l = ctx;

    return memcmp(l->keys->data + number * l->n_bytes, l->key, l->n_bytes) == 0;
}

uint32_t
cpprof__vm_number(const struct cpprof__vm_numbers *numbers, const void *key,
                  size_t n_bytes)
{
    struct lookup l = {&numbers->keys, key, n_bytes};

    return cpprof__index_find(
        &numbers->index, cpprof__hash_bytes(key, n_bytes, 0), is_equal, &l);
}

bool
cpprof__vm_number_add(struct cpprof__vm_numbers *numbers, const void *key,
                      size_t n_bytes)
{
    size_t n = numbers->keys.n / n_bytes;

    cpprof__buffer_append(&numbers->keys, key, n_bytes);
    return !numbers->keys.failed &&
           cpprof__index_add(&numbers->index,
                             cpprof__hash_bytes(key, n_bytes, 0), (uint32_t)n);
}

/* Its key becomes one that no function has. */
void
cpprof__vm_table_gone(struct cpprof__vm_table *table,
                      const struct cpprof__vm_function_key *key)
{
    uint32_t found = cpprof__vm_number(&table->functions, key, sizeof *key);

    if (found != CPPROF__VM_NONE)
        memset(table->functions.keys.data + found * sizeof *key, 0,
               sizeof *key);
}

bool
cpprof__vm_table_is_full(const struct cpprof__vm_table *table)
{
    return table->functions.keys.n >=
               CPPROF__VM_FUNCTIONS_MAX *
                   sizeof(struct cpprof__vm_function_key) ||
           table->locations.keys.n >=
               CPPROF__VM_LOCATIONS_MAX *
                   sizeof(struct cpprof__vm_location_key);
}

void
cpprof__vm_table_clear(struct cpprof__vm_table *table)
{
    cpprof__buffer_free(&table->functions.keys);
    cpprof__buffer_free(&table->locations.keys);
    cpprof__index_free(&table->functions.index);
    cpprof__index_free(&table->locations.index);
    table->generation++;
}
