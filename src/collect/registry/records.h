/* SPDX-License-Identifier: MIT */
/*
 * Gathers the records of a profile for <cpprof/records.h>: they are added one
 * by one, and go into the caller's array when all of them fit.
 */
#ifndef COLLECT_RECORDS_H
#define COLLECT_RECORDS_H

#include "base/buffer.h"
#include <cpprof/records.h>

#define CPPROF__RECORD_VALUES 4

struct cpprof__records {
    struct cpprof__buffer heads; /* struct of records.c, one per record */
    struct cpprof__buffer pcs;   /* uintptr_t */
    size_t n;
    bool not_in_use; /* of a heap: also records of which nothing is in use */
};

/*
 * values: so many numbers, or NULL for none: of heap alloc_bytes, free_bytes,
 * alloc_objects, free_objects; of block and mutex count, delay_ns, 0, 0. stack:
 * of cpprof__tables.tree. Failures are sticky, in the buffers.
 */
void
cpprof__records_add_stack(struct cpprof__records *r, const int64_t *values,
                          uint32_t stack);

#endif
