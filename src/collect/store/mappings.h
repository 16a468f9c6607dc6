/* SPDX-License-Identifier: MIT */
/*
 * Which executable mapping an address lies in, while mappings come and go. A
 * mapping that went stays in the store, marked as gone, for the samples that
 * were taken in it.
 */
#ifndef COLLECT_MAPPINGS_H
#define COLLECT_MAPPINGS_H

#include "collect/store/store.h"

#define CPPROF__MAPPING_CACHE 1024u

struct cpprof__mappings {
    struct cpprof__store *store;
    bool live;      /* mappings of this process, which can be read again */
    bool refreshed; /* since the last cpprof__mappings_begin() */
    /* pc -> mapping, direct-mapped; pc 0: empty. */
    struct cpprof__mapping_cached {
        uint64_t pc;
        uint32_t mapping;
    } cache[CPPROF__MAPPING_CACHE];
};

/* The store may be empty or hold mappings already. */
void
cpprof__mappings_init(struct cpprof__mappings *m, struct cpprof__store *store,
                      bool live);

/* A new round of look-ups: an unknown address may read the maps once more. */
void
cpprof__mappings_begin(struct cpprof__mappings *m);

/* Read /proc/self/maps and bring the store up to date; main binary first. */
void
cpprof__mappings_refresh(struct cpprof__mappings *m);

/* The mapping of pc, or CPPROF__STORE_NO_MAPPING. */
uint32_t
cpprof__mappings_find(struct cpprof__mappings *m, uint64_t pc);

#endif
