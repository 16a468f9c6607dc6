/* SPDX-License-Identifier: MIT */
/* Growable arrays of fixed-size items, counted in 32 bits. */
#ifndef SYMBOL_ARRAY_H
#define SYMBOL_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* No image has as many of anything; bounds what a hostile one can cost. */
#define CPPROF__ARRAY_MOST (16u << 20)

/* Make room for one item more than n in *items, a pointer to an array. */
static inline bool
cpprof__array_grow(void *items, uint32_t n, uint32_t *capacity,
                   size_t item_bytes)
{
    uint32_t larger = *capacity ? *capacity * 2 : 16;
    void **array = items;
    void *moved;

    if (n < *capacity)
        return true;
    if (n >= CPPROF__ARRAY_MOST)
        return false;
    moved = realloc(*array, larger * item_bytes);
    if (!moved)
        return false;
    *array = moved;
    *capacity = larger;
    return true;
}

#endif
