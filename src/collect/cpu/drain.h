/* SPDX-License-Identifier: MIT */
/*
 * Counts the records of the ring in a store. The same code runs in the profiled
 * process, which has its mappings at hand, and in the recorder, over what a
 * process left behind.
 */
#ifndef COLLECT_DRAIN_H
#define COLLECT_DRAIN_H

#include "base/buffer.h"
#include "base/hash.h"
#include "collect/cpu/thread_names.h"
#include "collect/signal/sample/ring.h"
#include "collect/store/mappings.h"

struct cpprof__drain {
    struct cpprof__ring *ring;
    struct cpprof__store *store;
    struct cpprof__mappings mappings;
    bool live;                          /* label sets can be read */
    struct cpprof__thread_names *names; /* samples get a label with the name of
                                         * their thread; or NULL */

    /* The store is full: make drain->store an empty one. False: there is none.
     */
    bool (*next_store)(struct cpprof__drain *drain);
    void *ctx;

    /* An index of the store's label sets, by their bytes. */
    struct cpprof__index labels;
    uint32_t n_labels;
    struct cpprof__buffer encoded; /* the set that is looked for */

    uint64_t n_records; /* taken so far */
    uint64_t n_lost;    /* samples that no store could take */
    struct cpprof__ring_record record;
    uint32_t record_mappings[CPPROF__RING_MAX_PCS];
};

/* Take all committed records. */
void
cpprof__drain_all(struct cpprof__drain *drain);

/* Frees what the drain allocated; the rest belongs to its maker. */
void
cpprof__drain_free(struct cpprof__drain *drain);

#endif
