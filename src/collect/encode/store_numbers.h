/* SPDX-License-Identifier: MIT */
/* Gives the mappings of a store their numbers in a profile that is being built.
 */
#ifndef COLLECT_STORE_NUMBERS_H
#define COLLECT_STORE_NUMBERS_H

#include "collect/encode/builder.h"
#include "collect/store/store.h"

/*
 * Add all mappings that the store has now to the builder. Entry i of the result
 * is the builder's number of mapping i; *n is the number of entries. NULL: no
 * memory. The caller frees it.
 */
uint32_t *
cpprof__store_numbers(const struct cpprof__store *store,
                      struct cpprof__builder *builder, size_t *n);

#endif
