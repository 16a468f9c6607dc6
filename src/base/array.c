/* SPDX-License-Identifier: MIT */
#include "base/array.h"

#include "own/memory.h"

#include <stdint.h>

#define FIRST_ITEMS 16

bool
cpprof__array_grow(void **at, size_t *capacity, size_t n, size_t item_bytes)
{
    size_t wanted = *capacity ? *capacity : FIRST_ITEMS;
    void *larger;

    if (n > SIZE_MAX / 4 / item_bytes)
        return false;
    while (wanted < n)
        wanted *= 2;
    larger = cpprof__realloc(*at, wanted * item_bytes);
    if (!larger)
        return false;
    *at = larger;
    *capacity = wanted;
    return true;
}

void
cpprof__array_trim(void **at, size_t *capacity, size_t n, size_t item_bytes)
{
    void *smaller = n ? cpprof__realloc(*at, n * item_bytes) : NULL;

    if (smaller) {
        *at = smaller;
        *capacity = n;
    }
}
