/* SPDX-License-Identifier: MIT */
/*
 * What cpprof allocates for itself is not the program's: at the top of a
 * function,
 *
 *     CPPROF__EXEMPT;
 *
 * keeps the thread's allocations out of the heap profile until it returns.
 * Memory of the program that is freed meanwhile still leaves the profile.
 */
#ifndef COLLECT_EXEMPT_H
#define COLLECT_EXEMPT_H

#include "collect/signal/heap.h"

static inline uint32_t *
cpprof__exempt_begin(void)
{
    cpprof__heap_self.exempt++;
    return &cpprof__heap_self.exempt;
}

static inline void
cpprof__exempt_end(uint32_t **exempt)
{
    --**exempt;
}

#define CPPROF__EXEMPT                                                         \
    uint32_t *exempt_ __attribute__((cleanup(cpprof__exempt_end))) =           \
        cpprof__exempt_begin()

#endif
