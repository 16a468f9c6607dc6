/* SPDX-License-Identifier: MIT */
#include "collect/encode/store_numbers.h"

#include "arch/atomic.h"

#include <stdlib.h>

uint32_t *
cpprof__store_numbers(const struct cpprof__store *store,
                      struct cpprof__builder *builder, size_t *n)
{
    size_t i, n_mappings = load_acquire(&store->head->n_mappings);
    uint32_t *numbers;

    if (n_mappings > CPPROF__STORE_MAPPINGS)
        n_mappings = CPPROF__STORE_MAPPINGS;
    numbers = calloc(n_mappings + 1, sizeof *numbers);
    if (!numbers)
        return NULL;
    for (i = 0; i < n_mappings; i++) {
        const struct cpprof__store_mapping *m = &store->mappings[i];
        struct cpprof__builder_mapping mapping = {
            m->start, m->limit, m->offset, cpprof__store_text(store, m->path),
            cpprof__store_text(store, m->build_id)};

        numbers[i] = cpprof__builder_add_mapping(builder, &mapping);
    }
    *n = n_mappings;
    return numbers;
}
