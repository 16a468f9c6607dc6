/* SPDX-License-Identifier: MIT */
/*
 * Sums up a heap's tables into records. Nothing is stopped and no lock is
 * taken: other threads go on to allocate, so a block that comes or goes
 * meanwhile is either in or out, as a whole. Nothing that is read is trusted:
 * the tables may be another process's.
 */
#ifndef COLLECT_HEAP_RECORDS_H
#define COLLECT_HEAP_RECORDS_H

#include "collect/signal/heap/heap.h"
#include <cpprof/heap.h>

/* Values in the order of the profile's sample types. */
enum cpprof__heap_value {
    CPPROF__ALLOC_OBJECTS,
    CPPROF__ALLOC_BYTES,
    CPPROF__INUSE_OBJECTS,
    CPPROF__INUSE_BYTES,
    CPPROF__HEAP_VALUES
};

struct cpprof__heap_record {
    uint32_t stack;  /* node of the tree */
    uint32_t labels; /* number + 1, or 0 */
    uint32_t bucket; /* the newest one of those in this record */
    uint32_t oldest; /* likewise */
    uint32_t size_class;
    int64_t block_bytes; /* size of the first block that was ever sampled */
    uint64_t fractions[CPPROF__HEAP_VALUES]; /* estimates, while summing up */
    int64_t values[CPPROF__HEAP_VALUES];     /* the same, rounded once */
    int64_t sampled[CPPROF__HEAP_VALUES]; /* as counted, without weights; in use
                                             now, not at the peak */
};

struct cpprof__heap_records {
    struct cpprof__heap_record *records; /* newest first; from malloc */
    size_t n;
    int64_t n_lost; /* samples that found no room */
    int64_t lost_objects;
    int64_t lost_bytes;
    uint64_t n_unfollowed; /* allocated, but not known when freed */
    uint64_t peak_ns;      /* CLOCK_REALTIME when the peak ended; 0: it lasts */
    int64_t rate;
    uint64_t n_rates;  /* changes of it while something was sampled */
    uint64_t begun_ns; /* CLOCK_REALTIME of the attach; 0: of the start */
};

/* flags: CPPROF_FLAG_PEAK, CPPROF_FLAG_LABELS. Errors: CPPROF_NOMEM. */
enum cpprof_status
cpprof__heap_records_take(const struct cpprof__heap *heap, uint16_t number,
                          uint32_t flags, struct cpprof__heap_records *records,
                          struct cpprof_error *error);

#endif
