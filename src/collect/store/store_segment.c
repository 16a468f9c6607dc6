/* SPDX-License-Identifier: MIT */
/*
 * Shared stores and views of them.
 *
 * A shared store is reference-counted; the last release frees its block, if it
 * was detached. A view is a head and an array of samples with the counts since
 * a base; texts, nodes and mappings are those of the store itself. Samples
 * that did not change are left out.
 */
#include "collect/store/store_segment.h"

#include "own/memory.h"
#include "own/sort.h"

#include <stdlib.h>
#include <sys/mman.h>

/* ---- holding a store -------------------------------------------------- */

struct cpprof__shared_store *
cpprof__shared_store_make(const struct cpprof__store *store)
{
    struct cpprof__shared_store *shared = cpprof__calloc(1, sizeof *shared);

    if (!shared)
        return NULL;
    shared->store = *store;
    shared->store.path = NULL; /* that string is not ours */
    shared->n_holds = 1;
    return shared;
}

struct cpprof__shared_store *
cpprof__shared_store_take(struct cpprof__shared_store *shared)
{
    __atomic_fetch_add(&shared->n_holds, 1, __ATOMIC_RELAXED);
    return shared;
}

void
cpprof__shared_store_release(struct cpprof__shared_store *shared)
{
    if (!shared || __atomic_sub_fetch(&shared->n_holds, 1, __ATOMIC_ACQ_REL))
        return;
    if (shared->block)
        munmap(shared->block, cpprof__store_bytes());
    cpprof__free(shared);
}

/* The indexes, which come last in the block, are for adding. */
void
cpprof__shared_store_detach(struct cpprof__shared_store *shared, void *block)
{
    size_t n = cpprof__store_shared_bytes();

    shared->block = block;
    madvise((char *)block + n, cpprof__store_bytes() - n, MADV_DONTNEED);
}

size_t
cpprof__shared_store_bytes(const struct cpprof__shared_store *shared)
{
    const struct cpprof__store_head *head = shared->store.head;

    return sizeof *head + head->n_text +
           head->n_nodes * sizeof *shared->store.nodes +
           head->n_samples * sizeof *shared->store.samples +
           head->n_mappings * sizeof *shared->store.mappings +
           head->n_label_sets * sizeof *shared->store.label_sets;
}

/* ---- parts ------------------------------------------------------------ */

bool
cpprof__store_base_take(struct cpprof__store_base *base,
                        const struct cpprof__store *store)
{
    uint32_t i, n = store->head->n_samples;

    *base = (struct cpprof__store_base){.total = store->head->total};
    if (!n)
        return true;
    base->counts = cpprof__malloc(n * sizeof *base->counts);
    if (!base->counts)
        return false;
    for (i = 0; i < n; i++)
        base->counts[i] = store->samples[i].count;
    base->n = n;
    return true;
}

static uint64_t
count_since(const struct cpprof__store *store,
            const struct cpprof__store_base *base, uint32_t i)
{
    return store->samples[i].count - (i < base->n ? base->counts[i] : 0);
}

static uint32_t
n_since(const struct cpprof__store *store,
        const struct cpprof__store_base *base)
{
    uint32_t i, n = 0;

    for (i = 0; i < store->head->n_samples; i++)
        n += count_since(store, base, i) != 0;
    return n;
}

/* The head and the samples are one block. */
bool
cpprof__store_view_make(struct cpprof__store *view,
                        const struct cpprof__store *store,
                        const struct cpprof__store_base *base)
{
    uint32_t i, n = 0, room = n_since(store, base);
    struct cpprof__store_sample *samples;
    struct cpprof__store_head *head =
        cpprof__malloc(sizeof *head + room * sizeof *samples);

    *view = *store;
    view->head = head;
    if (!head)
        return false;
    *head = *store->head;
    head->total = 0;
    samples = (void *)(head + 1);
    for (i = 0; i < store->head->n_samples && n < room; i++) {
        uint64_t count = count_since(store, base, i);

        if (!count)
            continue;
        samples[n] = store->samples[i];
        samples[n++].count = count;
        head->total += count;
    }
    head->n_samples = n;
    view->samples = samples;
    return true;
}

void
cpprof__store_view_free(struct cpprof__store *view)
{
    cpprof__free(view->head);
    view->head = NULL;
}

static int
by_node(const void *a, const void *b)
{
    const struct cpprof__store_sample *x = a, *y = b;

    return (x->node > y->node) - (x->node < y->node);
}

void
cpprof__store_view_drop_labels(struct cpprof__store *view)
{
    struct cpprof__store_sample *samples = view->samples;
    uint32_t i, kept = 0, n = view->head->n_samples;

    if (n)
        cpprof__sort(samples, n, sizeof *samples, by_node);
    for (i = 0; i < n; i++) {
        if (kept && samples[kept - 1].node == samples[i].node)
            samples[kept - 1].count += samples[i].count;
        else
            samples[kept++] = samples[i];
        samples[kept - 1].labels = 0;
    }
    view->head->n_samples = kept;
}
