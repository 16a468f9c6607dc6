/* SPDX-License-Identifier: MIT */
#include "vm/profile/merged.h"

#include <string.h>

struct lookup {
    const struct cpprof__vm_merged_sample *all, *sample;
    const char *labels;
};

static bool
equal(void *ctx, uint32_t value)
{
    const struct lookup *l = ctx;
    const struct cpprof__vm_merged_sample *a = &l->all[value], *b = l->sample;

    return a->n_ids == b->n_ids && a->n_labels == b->n_labels &&
           memcmp(a->ids, b->ids, a->n_ids * sizeof *a->ids) == 0 &&
           memcmp(a->ids + a->n_ids, l->labels, a->n_labels) == 0;
}

static bool
add_new(struct cpprof__vm_merged *merged, uint64_t hash, struct lookup *l)
{
    struct cpprof__vm_merged_sample made = *l->sample;
    size_t n_ids = made.n_ids * sizeof *made.ids;
    size_t n = merged->samples.n / sizeof made;
    char *copy = cpprof__arena_alloc(&merged->arena, n_ids + made.n_labels + 1);

    if (!copy)
        return false;
    memcpy(copy, made.ids, n_ids);
    memcpy(copy + n_ids, l->labels, made.n_labels);
    copy[n_ids + made.n_labels] = 0;
    made.ids = (const uint64_t *)copy;
    cpprof__buffer_append(&merged->samples, &made, sizeof made);
    return !merged->samples.failed && n < CPPROF__INDEX_NONE &&
           cpprof__index_add(&merged->index, hash, (uint32_t)n);
}

bool
cpprof__vm_merged_add(struct cpprof__vm_merged *merged,
                      const struct cpprof__vm_merged_sample *sample,
                      const char *labels)
{
    struct cpprof__vm_merged_sample *all =
        (struct cpprof__vm_merged_sample *)merged->samples.data;
    struct lookup l = {all, sample, labels};
    uint64_t hash = cpprof__hash_bytes(
        labels, sample->n_labels,
        cpprof__hash_bytes(sample->ids, sample->n_ids * sizeof *sample->ids,
                           0));
    uint32_t found = cpprof__index_find(&merged->index, hash, equal, &l);

    if (found == CPPROF__INDEX_NONE)
        return add_new(merged, hash, &l);
    all[found].value += sample->value;
    return true;
}

void
cpprof__vm_merged_free(struct cpprof__vm_merged *merged)
{
    cpprof__arena_free(&merged->arena);
    cpprof__buffer_free(&merged->samples);
    cpprof__index_free(&merged->index);
}
