/* SPDX-License-Identifier: MIT */
/*
 * A store that several count with: who began later than it did, or leaves
 * before it does, has a part of its counts. Entries of a store never change
 * but for their counts, so a part is what the counts were at the beginning and
 * what they are at the end; a store that is full or whose sampling has ended
 * stays, out of use, for as long as somebody holds it.
 */
#ifndef COLLECT_STORE_SEGMENT_H
#define COLLECT_STORE_SEGMENT_H

#include "collect/store/store.h"

struct cpprof__shared_store {
    struct cpprof__store store; /* to be read */
    void *block;      /* of memory that ends with it; NULL: it is in use */
    uint32_t n_holds; /* the first is its maker's */
};

/* NULL: no memory. */
struct cpprof__shared_store *
cpprof__shared_store_make(const struct cpprof__store *store);
struct cpprof__shared_store *
cpprof__shared_store_take(struct cpprof__shared_store *shared);
/* The last one frees it. Safety: MT. */
void
cpprof__shared_store_release(struct cpprof__shared_store *shared);

/* Nobody adds to the store any more, and its block is the holders'. */
void
cpprof__shared_store_detach(struct cpprof__shared_store *shared, void *block);

/* Bytes of memory that a retired store takes. */
size_t
cpprof__shared_store_bytes(const struct cpprof__shared_store *shared);

/* What a store counted until some moment. */
struct cpprof__store_base {
    uint64_t *counts; /* by number of the sample; NULL: nothing */
    uint32_t n;
    uint64_t total;
};

/* That it counted what it has now; false: no memory. */
bool
cpprof__store_base_take(struct cpprof__store_base *base,
                        const struct cpprof__store *store);

/*
 * A store to be read whose samples are those of another one since base, with
 * their counts since then; what they refer to is the other's.
 */
struct cpprof__store_view {
    struct cpprof__store store; /* .head NULL: there is none */
};
bool
cpprof__store_view_make(struct cpprof__store_view *view,
                        const struct cpprof__store *store,
                        const struct cpprof__store_base *base);
void
cpprof__store_view_free(struct cpprof__store_view *view);

/* One sample for each stack, without labels. */
void
cpprof__store_view_drop_labels(struct cpprof__store_view *view);

#endif
