/* SPDX-License-Identifier: MIT */
/*
 * From an address to the number of the thing that covers it: the symbolizer
 * finds symbols, compilation units, functions, inlined calls and JIT code in
 * such tables, and the readers of old formats mappings.
 *
 * Fill with add, then seal, then find. Ranges may overlap; of those that cover
 * an address wins the highest rank, then the nearest start below it, then the
 * lowest value.
 */
#ifndef BASE_RANGES_H
#define BASE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpprof__range {
    uint64_t start;
    uint64_t limit; /* first address behind it */
    uint32_t value;
    uint32_t rank;
};

/* Zero bytes is a valid, empty table. Invariant once sealed: sorted by start,
 * disjoint, none empty. */
struct cpprof__ranges {
    struct cpprof__range *items;
    size_t n;
    size_t capacity;
    bool failed; /* an allocation failed: some are missing */
};

/* Empty ranges are left out. */
void
cpprof__ranges_add(struct cpprof__ranges *ranges, struct cpprof__range range);

/* Make disjoint; false, and the table empty, when memory ran out here or in an
 * add before. */
bool
cpprof__ranges_seal(struct cpprof__ranges *ranges);

/* What covers address, or NULL. */
const struct cpprof__range *
cpprof__ranges_find(const struct cpprof__ranges *ranges, uint64_t address);

/* The first range that starts above address, or NULL. */
const struct cpprof__range *
cpprof__ranges_above(const struct cpprof__ranges *ranges, uint64_t address);

void
cpprof__ranges_free(struct cpprof__ranges *ranges);

#endif
