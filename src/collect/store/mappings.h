/* SPDX-License-Identifier: MIT */
/*
 * Which executable mapping an address lies in, while mappings come and go. A
 * mapping that went stays in the store, marked as gone, for the samples that
 * were taken in it.
 */
#ifndef COLLECT_MAPPINGS_H
#define COLLECT_MAPPINGS_H

#include "collect/store/store.h"

#define CPPROF__MAPPINGS_UNKNOWN 1024u

struct cpprof__mappings {
    struct cpprof__store *store;
    bool live;      /* mappings of this process, which can be read again */
    bool refreshed; /* since the last cpprof__mappings_begin() */
    bool has_code;  /* code is what it was then */
    uint32_t code;  /* cpprof__made_code() of now, or CPPROF__NO_MAPPING */
    /* Numbers of the mappings that are there now, by address. */
    uint32_t now[CPPROF__STORE_MAPPINGS];
    uint32_t n_now;
    /* By hash, addresses that lay in none of them when the maps were last read;
     * 0: none. They are no reason to read the maps again. */
    uint64_t unknown[CPPROF__MAPPINGS_UNKNOWN];
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

/* The mapping of each of n addresses, or CPPROF__NO_MAPPING; of code that was
 * made at run time how much of it has a name by now. */
void
cpprof__mappings_find(struct cpprof__mappings *m, const uint64_t *pcs, size_t n,
                      uint32_t *mappings);

#endif
