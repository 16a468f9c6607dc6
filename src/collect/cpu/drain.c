/* SPDX-License-Identifier: MIT */
/*
 * Takes committed records out of the ring and counts them in a store: finds the
 * mapping of each address and the number of the label set, then adds the stack.
 *
 * A label set is known by its content: the labels of the program and, if that
 * is asked for, the name of the thread. In the profiled process the record's
 * pointer leads to them; in the recorder, which reads a ring left by another
 * process, only sets that the process itself had stored are found, by what the
 * record says of them (its identity). When the store is full, the caller
 * provides the next one and the record is added there.
 *
 * Invariants: one thread drains at a time; every record that was taken out is
 * counted in a store or counted as lost.
 */
#include "collect/cpu/drain.h"

#include "arch/atomic.h"
#include "collect/labels/labels.h"
#include "own/memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- labels ----------------------------------------------------------- */

struct wanted {
    const struct cpprof__store *store;
    const void *encoded;
    size_t n;
};

static bool
is_wanted(void *ctx, uint32_t number)
{
    const struct wanted *wanted = ctx;
    const struct cpprof__store_labels *at = &wanted->store->label_sets[number];

    return at->n_bytes == wanted->n &&
           memcmp(wanted->store->text + at->text, wanted->encoded,
                  at->n_bytes) == 0;
}

/* The store says which set is at an address now, because a recorder that reads
 * the ring later knows sets by their address only. Nobody reads private memory
 * later. */
static void
keep_identity(struct cpprof__store *store, uint32_t number, uint64_t identity)
{
    uint32_t i;

    if (!store->path || store->label_sets[number].identity == identity)
        return;
    for (i = 0; i < store->head->n_label_sets; i++)
        if (store->label_sets[i].identity == identity)
            store_relaxed(&store->label_sets[i].identity, (uint64_t)0);
    store_relaxed(&store->label_sets[number].identity, identity);
}

/* The number + 1 of a set in the store, which is added if it is new; 0: there
 * is no room. */
static uint32_t
labels_by_content(struct cpprof__drain *drain, const void *encoded, size_t n,
                  uint64_t hash, uint64_t identity)
{
    struct cpprof__store *store = drain->store;
    struct wanted wanted = {store, encoded, n};
    uint32_t number;

    if (store->head->n_label_sets < drain->n_labels)
        cpprof__index_free(&drain->labels); /* it is another store */
    number = cpprof__index_find(&drain->labels, hash, is_wanted, &wanted);
    if (number == CPPROF__INDEX_NONE) {
        number = cpprof__store_add_labels(store, encoded, n);
        if (!number--)
            return 0;
        cpprof__index_add(&drain->labels, hash, number);
    }
    drain->n_labels = store->head->n_label_sets;
    keep_identity(store, number, identity);
    return number + 1;
}

/* The number + 1 of a set in what another process left: only sets that it had
 * stored itself are found. */
static uint32_t
labels_by_identity(const struct cpprof__drain *drain, uint64_t identity)
{
    uint32_t i;

    for (i = 0; i < drain->store->head->n_label_sets; i++)
        if (drain->store->label_sets[i].identity == identity)
            return i + 1;
    return 0;
}

_Static_assert(CPPROF__LABELS_BYTES_MAX <= CPPROF__STORE_TEXT / 4,
               "a store has room for more than one set");

/* The identity of a set with the name of a thread, which is none of a set
 * alone. */
static uint64_t
identity_with_thread(const struct cpprof__ring_head *head)
{
    return cpprof__mix_u64(head->labels ^
                           cpprof__mix_u64((uint32_t)head->tid)) |
           1;
}

static bool
has_key(const struct cpprof__label_set *set, const char *key)
{
    struct cpprof__label_list list = {0};
    bool has = false;
    size_t i;

    cpprof__labels_decode(set->encoded, set->n_encoded, &list);
    for (i = 0; i < list.n; i++)
        has |= !strcmp(list.at[i].key, key);
    cpprof__label_list_free(&list);
    return has;
}

/* The set (or NULL) with a label for the thread, in drain->encoded. False: as
 * the thread has no name, or the program such a label of its own, the set is
 * what it is. */
static bool
add_thread(struct cpprof__drain *drain, const struct cpprof__label_set *set)
{
    const struct cpprof_label label = {
        .key = CPPROF__THREAD_LABEL,
        .str = cpprof__thread_name(drain->names, drain->record.head.tid)};
    struct cpprof__buffer *encoded = &drain->encoded;

    if (!*label.str || (set && has_key(set, label.key)))
        return false;
    encoded->n = 0;
    if (set)
        cpprof__buffer_append(encoded, set->encoded, set->n_encoded);
    cpprof__labels_encode(encoded, &label);
    if (!encoded->failed && encoded->n <= CPPROF__LABELS_BYTES_MAX)
        return true;
    cpprof__buffer_free(encoded);
    return false;
}

/* False: there is no room, but an empty store would have some. */
static bool
find_live(struct cpprof__drain *drain, uint32_t *labels)
{
    const struct cpprof__ring_head *head = &drain->record.head;
    const struct cpprof__label_set *set = (void *)(uintptr_t)head->labels;
    const struct cpprof__buffer *encoded = &drain->encoded;

    *labels = 0;
    if (drain->names && head->tid && add_thread(drain, set))
        *labels =
            labels_by_content(drain, encoded->data, encoded->n,
                              cpprof__hash_bytes(encoded->data, encoded->n, 0),
                              identity_with_thread(head));
    else if (set)
        *labels = labels_by_content(drain, set->encoded, set->n_encoded,
                                    set->hash, head->labels);
    else
        return true;
    return *labels != 0;
}

static uint32_t
find_left(const struct cpprof__drain *drain)
{
    const struct cpprof__ring_head *head = &drain->record.head;
    uint32_t found = labels_by_identity(drain, identity_with_thread(head));

    return found || !head->labels ? found
                                  : labels_by_identity(drain, head->labels);
}

/* ---- samples ---------------------------------------------------------- */

/* even_so: without its labels, if there is no room for them. */
static bool
add_record(struct cpprof__drain *drain, bool even_so)
{
    const struct cpprof__ring_record *record = &drain->record;
    uint32_t labels;

    if (!drain->live)
        labels = find_left(drain);
    else if (!find_live(drain, &labels) && !even_so)
        return false;
    cpprof__mappings_find(&drain->mappings, record->pcs, record->n_pcs,
                          drain->record_mappings);
    return cpprof__store_add(drain->store, record->pcs, drain->record_mappings,
                             record->n_pcs, labels, record->head.weight);
}

static bool
has_next_store(struct cpprof__drain *drain)
{
    return drain->next_store && drain->next_store(drain);
}

void
cpprof__drain_all(struct cpprof__drain *drain)
{
    cpprof__mappings_begin(&drain->mappings);
    while (cpprof__ring_pop(drain->ring, &drain->record)) {
        drain->n_records++;
        if (add_record(drain, false))
            continue;
        has_next_store(drain);
        if (!add_record(drain, true))
            drain->n_lost += drain->record.head.weight;
    }
}

void
cpprof__drain_free(struct cpprof__drain *drain)
{
    cpprof__index_free(&drain->labels);
    cpprof__buffer_free(&drain->encoded);
    cpprof__free(drain->names);
}
