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

bool
cpprof__array_room_for(void **at, size_t *capacity, size_t n, size_t more,
                       size_t item_bytes, const void **given)
{
    size_t offset = (uintptr_t)*given - (uintptr_t)*at;
    bool is_own = offset < n * item_bytes;

    if (more > *capacity - n &&
        !cpprof__array_grow(at, capacity, n + more, item_bytes))
        return false;
    if (is_own)
        *given = (const char *)*at + offset;
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
