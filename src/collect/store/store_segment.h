/* SPDX-License-Identifier: MIT */
/*
 * A store that several captures count with. A capture that began later than the
 * store, or ends before it, has a part of its counts. Of an entry only the
 * count ever changes, so a part is the difference between the counts at the end
 * and at the beginning. A store that is full, or whose sampling has ended, is
 * detached and stays for as long as somebody holds it.
 */
#ifndef COLLECT_STORE_SEGMENT_H
#define COLLECT_STORE_SEGMENT_H

#include "collect/store/store.h"

struct cpprof__shared_store {
    struct cpprof__store store; /* to be read */
    void *block;                /* freed with the store; NULL: it is in use */
    uint32_t n_holds;           /* the first is its maker's */
};

/* NULL: no memory. */
struct cpprof__shared_store *
cpprof__shared_store_make(const struct cpprof__store *store);
struct cpprof__shared_store *
cpprof__shared_store_take(struct cpprof__shared_store *shared);
/* The last release frees it. Safety: MT. */
void
cpprof__shared_store_release(struct cpprof__shared_store *shared);

/* Nobody adds to the store any more, and its block belongs to the holders. */
void
cpprof__shared_store_detach(struct cpprof__shared_store *shared, void *block);

/* Bytes of memory that a detached store takes. */
size_t
cpprof__shared_store_bytes(const struct cpprof__shared_store *shared);

/* The counts of a store at one moment. */
struct cpprof__store_base {
    uint64_t *counts; /* by number of the sample; NULL: all are 0 */
    uint32_t n;
    uint64_t total;
};

/* Take the counts that the store has now; false: no memory. */
bool
cpprof__store_base_take(struct cpprof__store_base *base,
                        const struct cpprof__store *store);

/*
 * A store for reading: the samples of another one that changed since base, with
 * their counts since then. What they refer to is the other store's.
 */
bool
cpprof__store_view_make(struct cpprof__store *view,
                        const struct cpprof__store *store,
                        const struct cpprof__store_base *base);
/* Nothing happens if there is none, .head NULL. */
void
cpprof__store_view_free(struct cpprof__store *view);

/* One sample for each stack, without labels. */
void
cpprof__store_view_drop_labels(struct cpprof__store *view);

#endif
