/* SPDX-License-Identifier: MIT */
/* Arrays of what an image has, which may be hostile: base/array.h, bounded. */
#ifndef SYMBOL_ARRAY_H
#define SYMBOL_ARRAY_H

#include "base/array.h"

#include <stdint.h>

/* No image has as many of anything; bounds what a hostile one can cost. */
#define CPPROF__ARRAY_MOST (16u << 20)

/* Make room for one item more than n in *items, a pointer to an array. */
static inline bool
cpprof__array_room(void *items, uint32_t n, size_t *capacity, size_t item_bytes)
{
    return n < *capacity ||
           (n < CPPROF__ARRAY_MOST &&
            cpprof__array_grow(items, capacity, (size_t)n + 1, item_bytes));
}

#endif
