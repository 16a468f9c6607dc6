/* SPDX-License-Identifier: MIT */
/*
 * The records of a profile as a snapshot keeps them: for each a key of 64 bits
 * (stack, size class, label set) and its values, in one block, sorted by key.
 * 40 bytes for a record of a heap, 24 of block and mutex, 16 of counts.
 */
#ifndef COLLECT_KEPT_RECORDS_H
#define COLLECT_KEPT_RECORDS_H

#include "collect/encode/records_profile.h"
#include "collect/heap/heap_records.h"

#include <stdbool.h>

struct cpprof__kept {
    uint64_t *records; /* key and n_values values each; from malloc, or NULL */
    size_t n;
    unsigned n_values;
    int64_t lost[3]; /* heap: samples, objects, bytes */
    uint64_t n_unfollowed;
};

/* Records of the same key become one, and those without any value are left out.
 * False: no memory. */
bool
cpprof__kept_records(struct cpprof__kept *kept,
                     const struct cpprof__stack_record *records, size_t n,
                     size_t n_values);
bool
cpprof__kept_heap(struct cpprof__kept *kept,
                  const struct cpprof__heap_records *records);
void
cpprof__kept_free(struct cpprof__kept *kept);

/* now minus base. *n says how many records have a value that is not 0. NULL: no
 * memory. The caller frees them. */
struct cpprof__stack_record *
cpprof__kept_difference(const struct cpprof__kept *now,
                        const struct cpprof__kept *base, size_t *n);

/*
 * The same in place, for records of a heap, which keep their order. If a record
 * of base is no longer among them, its bucket was recycled: its values are part
 * of the same stack's with lost labels, or of the lost samples, and are not
 * subtracted there. Without in_use, the values in use are left as they are.
 */
void
cpprof__kept_subtract_heap(struct cpprof__heap_records *records,
                           const struct cpprof__kept *base, bool in_use);

#endif
