/* SPDX-License-Identifier: MIT */
/*
 * The table of label sets: adds a set once and hands out its number.
 *
 * A set is sorted before it is looked up, so that the order in which a file
 * lists labels does not make two sets of one. The sort is stable because
 * several labels of one key are the values of that key in their order.
 *
 * Invariants: those of labels.h; a number that was handed out stays valid as
 * long as the table lives.
 */
#include "profile/model/labels.h"

#include "own/memory.h"

#include <string.h>

bool
cpprof__label_sets_begin(struct cpprof__label_sets *s)
{
    return cpprof__label_sets_add(s, NULL, NULL, 0) == 0;
}

void
cpprof__label_sets_free(struct cpprof__label_sets *s)
{
    CPPROF__ARRAY_FREE(&s->labels);
    CPPROF__ARRAY_FREE(&s->sets);
    cpprof__index_free(&s->index);
}

static bool
comes_before(const struct cpprof__strings *strings, const struct pprof_label *a,
             const struct pprof_label *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind;
    return a->key != b->key &&
           cpprof__strings_compare(strings, a->key, b->key) < 0;
}

/* Labels are few and mostly sorted already; the order of equal keys must stay,
 * as they are the several values of one key. */
static void
insertion_sort(const struct cpprof__strings *strings,
               struct pprof_label *labels, size_t n)
{
    size_t i, j;

    for (i = 1; i < n; i++) {
        struct pprof_label label = labels[i];

        for (j = i; j && comes_before(strings, &label, &labels[j - 1]); j--)
            labels[j] = labels[j - 1];
        labels[j] = label;
    }
}

/* For the hostile case of a sample with very many labels. */
static void
merge_sort(const struct cpprof__strings *strings, struct pprof_label *labels,
           size_t n, struct pprof_label *spare)
{
    size_t half = n / 2, i = 0, j = half, k = 0;

    if (n <= 16) {
        insertion_sort(strings, labels, n);
        return;
    }
    merge_sort(strings, labels, half, spare);
    merge_sort(strings, labels + half, n - half, spare);
    memcpy(spare, labels, n * sizeof *labels);
    while (i < half && j < n)
        labels[k++] = comes_before(strings, &spare[j], &spare[i]) ? spare[j++]
                                                                  : spare[i++];
    while (i < half)
        labels[k++] = spare[i++];
    while (j < n)
        labels[k++] = spare[j++];
}

static bool
sort_labels(const struct cpprof__strings *strings, struct pprof_label *labels,
            size_t n)
{
    struct pprof_label *spare = NULL;

    if (n > 16) {
        spare = cpprof__malloc(n * sizeof *spare);
        if (!spare)
            return false;
    }
    merge_sort(strings, labels, n, spare);
    cpprof__free(spare);
    return true;
}

struct wanted {
    const struct cpprof__label_sets *sets;
    const struct pprof_label *labels;
    size_t n;
};

static bool
is_wanted(void *ctx, uint32_t value)
{
    const struct wanted *w = ctx;
    size_t n, i;
    const struct pprof_label *x = cpprof__label_set(w->sets, value, &n);

    if (n != w->n)
        return false;
    for (i = 0; i < n; i++) {
        const struct pprof_label *a = &x[i], *b = &w->labels[i];

        if (a->num != b->num || a->key != b->key || a->text != b->text ||
            a->unit != b->unit || a->kind != b->kind)
            return false;
    }
    return true;
}

static uint64_t
hash_labels(const struct pprof_label *labels, size_t n)
{
    uint64_t hash = n;
    size_t i;

    for (i = 0; i < n; i++) {
        const struct pprof_label *l = &labels[i];

        hash = cpprof__hash_add(hash, (uint64_t)l->key << 32 | l->text);
        hash = cpprof__hash_add(hash, (uint64_t)l->num);
        hash = cpprof__hash_add(hash, (uint64_t)l->unit << 32 | l->kind);
    }
    return cpprof__hash_u64(hash);
}

uint32_t
cpprof__label_sets_add(struct cpprof__label_sets *s,
                       const struct cpprof__strings *strings,
                       struct pprof_label *labels, size_t n)
{
    struct wanted wanted = {s, labels, n};
    uint64_t hash;
    uint32_t number;

    if (n > 1 && !sort_labels(strings, labels, n))
        return CPPROF__NO_LABEL_SET;
    hash = hash_labels(labels, n);
    number = cpprof__index_find(&s->index, hash, is_wanted, &wanted);
    if (number != CPPROF__INDEX_NONE || s->sets.n >= CPPROF__NO_LABEL_SET)
        return number;
    if (!CPPROF__ARRAY_ROOM(&s->labels, n) || !CPPROF__ARRAY_ROOM(&s->sets, 1))
        return CPPROF__NO_LABEL_SET;
    number = (uint32_t)s->sets.n;
    if (!cpprof__index_add(&s->index, hash, number))
        return CPPROF__NO_LABEL_SET;
    if (n)
        memcpy(s->labels.at + s->labels.n, labels, n * sizeof *labels);
    s->sets.at[s->sets.n++] = (struct cpprof__label_set){s->labels.n, n};
    s->labels.n += n;
    return number;
}
