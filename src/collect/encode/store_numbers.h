/* SPDX-License-Identifier: MIT */
/* The mappings of a store, as those of a profile that is being built. */
#ifndef COLLECT_STORE_NUMBERS_H
#define COLLECT_STORE_NUMBERS_H

#include "collect/encode/builder.h"
#include "collect/store/store.h"

/*
 * Add all mappings that the store has now to the builder. The number there of
 * mapping i is at [i]; *n says of how many. NULL: no memory. The caller frees
 * it.
 */
uint32_t *
cpprof__store_numbers(const struct cpprof__store *store,
                      struct cpprof__builder *builder, size_t *n);

#endif
