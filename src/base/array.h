/* SPDX-License-Identifier: MIT */
/*
 * Growable arrays of any type. Zero bytes is a valid, empty array; `n` counts
 * the elements in use. They double, through realloc, which moves large ones by
 * their pages and not by their bytes; room that is never written costs nothing.
 */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include "own/memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define CPPROF__ARRAY(type)                                                    \
    struct {                                                                   \
        type *at;                                                              \
        size_t n;                                                              \
        size_t capacity;                                                       \
    }

/* Make the block at *at hold n elements; false when there is no memory. */
bool
cpprof__array_grow(void **at, size_t *capacity, size_t n, size_t item_bytes);

/* Room for `more` elements behind the last one; false when out of memory. */
#define CPPROF__ARRAY_ROOM(a, more)                                            \
    ((more) <= (a)->capacity - (a)->n ||                                       \
     cpprof__array_grow((void **)&(a)->at, &(a)->capacity, (a)->n + (more),    \
                        sizeof *(a)->at))

/* The same for elements that are to be copied behind the last one: *given,
 * which may lie in the array itself, is where they are when it has grown. */
#define CPPROF__ARRAY_ROOM_FOR(a, more, given)                                 \
    cpprof__array_room_for((void **)&(a)->at, &(a)->capacity, (a)->n, more,    \
                           sizeof *(a)->at, (const void **)(given))
bool
cpprof__array_room_for(void **at, size_t *capacity, size_t n, size_t more,
                       size_t item_bytes, const void **given);

/* One more element, not initialised, or NULL. */
#define CPPROF__ARRAY_ADD(a)                                                   \
    (CPPROF__ARRAY_ROOM(a, 1) ? &(a)->at[(a)->n++] : NULL)

/* Give back what is not in use. */
#define CPPROF__ARRAY_TRIM(a)                                                  \
    cpprof__array_trim((void **)&(a)->at, &(a)->capacity, (a)->n,              \
                       sizeof *(a)->at)
void
cpprof__array_trim(void **at, size_t *capacity, size_t n, size_t item_bytes);

#define CPPROF__ARRAY_FREE(a)                                                  \
    do {                                                                       \
        cpprof__free((a)->at);                                                 \
        (a)->at = NULL;                                                        \
        (a)->n = (a)->capacity = 0;                                            \
    } while (0)

#endif
