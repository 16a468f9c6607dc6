/* SPDX-License-Identifier: MIT */
#include "collect/drain.h"

#include "base/buffer.h"
#include "collect/labels.h"

/* The set's number in the store, adding it when its strings can be read. */
static uint32_t
labels_in_store(struct cpprof__drain *drain)
{
    const struct cpprof__label_set *set =
        (void *)(uintptr_t)drain->record.labels;
    struct cpprof__buffer encoded = {0};
    uint32_t i, labels;

    if (!set)
        return 0;
    for (i = 0; i < drain->store->head->n_label_sets; i++)
        if (drain->store->label_sets[i].identity == drain->record.labels)
            return i + 1;
    if (!drain->live)
        return 0;
    cpprof__labels_encode(&encoded, set);
    labels = cpprof__store_add_labels(drain->store, drain->record.labels,
                                      encoded.data, encoded.n);
    cpprof__buffer_free(&encoded);
    return labels;
}

static bool
add_record(struct cpprof__drain *drain)
{
    const struct cpprof__ring_record *record = &drain->record;
    size_t i;

    for (i = 0; i < record->n_pcs; i++)
        drain->record_mappings[i] =
            cpprof__mappings_find(&drain->mappings, record->pcs[i]);
    return cpprof__store_add(drain->store, record->pcs, drain->record_mappings,
                             record->n_pcs, labels_in_store(drain),
                             record->weight);
}

void
cpprof__drain_all(struct cpprof__drain *drain)
{
    cpprof__mappings_begin(&drain->mappings);
    while (cpprof__ring_pop(drain->ring, &drain->record)) {
        drain->n_records++;
        if (add_record(drain))
            continue;
        if (!drain->next_store || !drain->next_store(drain) ||
            !add_record(drain))
            drain->n_lost += drain->record.weight;
    }
}
