/* SPDX-License-Identifier: MIT */
/*
 * Makes label sets and answers questions about them.
 *
 * The labels of a new set are sorted by key, the last value of a key wins, and
 * all of it is encoded into one block of bytes that the labels point into.
 * Equal sets have equal bytes, so comparing and hashing look at bytes only. A
 * set whose bytes exceed the limit gets one label that says so for samples; the
 * program still sees its own labels.
 *
 * Invariants: a set never changes after it was made, except for its reference
 * count and, once it was freed, its link in the limbo list.
 */
#include "collect/labels/labels.h"
#include "own/memory.h"
#include "own/sort.h"

#include "arch/atomic.h"
#include "base/hash.h"
#include "base/status.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/real.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most labels that are sorted without an allocation. */
#define FEW 32

/* A label of the set to be, and its place in the order it was given in. */
struct pick {
    const struct cpprof_label *label;
    size_t order;
};

static int
by_key(const void *a, const void *b)
{
    const struct pick *x = a, *y = b;
    int keys = strcmp(x->label->key, y->label->key);

    return keys ? keys : (x->order > y->order) - (x->order < y->order);
}

/* Keep the last label of each key. Returns how many are left. */
static size_t
keep_last(struct pick *picks, size_t n)
{
    size_t i, kept = 0;

    for (i = 0; i < n; i++)
        if (i + 1 == n ||
            strcmp(picks[i].label->key, picks[i + 1].label->key) != 0)
            picks[kept++] = picks[i];
    return kept;
}

/* The labels of a set, pointing into its own bytes. */
static void
point_inside(struct cpprof_labels *set, const char *at,
             const struct pick *picks)
{
    size_t i;

    for (i = 0; i < set->n; i++) {
        const struct cpprof_label *from = picks[i].label;
        struct cpprof_label *label = &set->labels[i];

        label->key = at + 1;
        at = label->key + strlen(label->key) + 1;
        if (from->str)
            label->str = at;
        else if (*at)
            label->unit = at;
        label->num = from->str ? 0 : from->num;
        at += strlen(at) + 1 + (from->str ? 0 : sizeof label->num);
    }
}

/* Append the label that stands in for a set that is too large. Returns where it
 * begins. */
static size_t
put_stand_in(struct cpprof__buffer *encoded)
{
    size_t begin = encoded->n;
    char text[48];
    const struct cpprof_label label = {.key = "labels", .str = text};

    snprintf(text, sizeof text, "[%zu bytes, too large]", begin);
    cpprof__labels_encode(encoded, &label);
    return begin;
}

static struct cpprof_labels *
make(const struct pick *picks, size_t n)
{
    size_t i, head = sizeof(struct cpprof_labels) + n * sizeof *picks->label;
    struct cpprof__buffer encoded = {0};
    struct cpprof_labels *set = NULL;
    size_t begin = 0; /* of what is sampled */

    cpprof__use(); /* threads inherit it */
    for (i = 0; i < n; i++)
        cpprof__labels_encode(&encoded, picks[i].label);
    if (encoded.n > CPPROF__LABELS_BYTES_MAX)
        begin = put_stand_in(&encoded);
    if (!encoded.failed)
        set = cpprof__calloc(1, head + encoded.n + 1);
    if (set) {
        char *bytes = (char *)set + head;

        if (encoded.n)
            memcpy(bytes, encoded.data, encoded.n);
        set->n = n;
        set->set.encoded = bytes + begin;
        set->set.n_encoded = (uint32_t)(encoded.n - begin);
        set->set.hash =
            cpprof__hash_bytes(set->set.encoded, set->set.n_encoded, 0);
        point_inside(set, bytes, picks);
        /* Acquired by seen_set() of collect/dump/blocked_thread.c. */
        store_release(&set->set.refs, 1u);
    }
    cpprof__buffer_free(&encoded);
    return set;
}

static struct cpprof_labels *
merge(const struct cpprof_labels *parent, const struct cpprof_label *labels,
      size_t n)
{
    struct pick few[FEW], *picks = few;
    size_t i, n_parent = parent ? parent->n : 0;
    struct cpprof_labels *set;

    if (n > SIZE_MAX / sizeof *labels / 2 - n_parent)
        return NULL;
    if (n_parent + n > FEW)
        picks = cpprof__malloc((n_parent + n) * sizeof *picks);
    if (!picks)
        return NULL;
    for (i = 0; i < n_parent + n; i++)
        picks[i] = (struct pick){
            i < n_parent ? &parent->labels[i] : &labels[i - n_parent], i};
    if (n)
        cpprof__sort(picks, n_parent + n, sizeof *picks, by_key);
    set = make(picks, keep_last(picks, n_parent + n));
    if (picks != few)
        cpprof__free(picks);
    return set;
}

enum cpprof_status
cpprof_labels_merge(const struct cpprof_labels *parent,
                    const struct cpprof_label *labels, size_t n,
                    struct cpprof_labels **set, struct cpprof_error *error)
{
    CPPROF__NEED(error, (labels || !n) && set);

    struct cpprof_labels *made;
    size_t i;
    CPPROF__EXEMPT;

    for (i = 0; i < n; i++)
        if (!labels[i].key)
            return cpprof__fail(error, CPPROF_INVALID, 0,
                                "label %zu has no key", i);
    made = merge(parent, labels, n);
    if (!made)
        return cpprof__fail_nomem(error);
    *set = made;
    return CPPROF_OK;
}

/* The labels of an argument list, up to max. Returns how many there are, or
 * SIZE_MAX when the last key has no value. */
static size_t
read_arguments(const char *key, va_list args, struct cpprof_label *labels,
               size_t max)
{
    size_t n = 0;

    for (; key; key = va_arg(args, const char *)) {
        const char *value = va_arg(args, const char *);

        if (!value)
            return SIZE_MAX;
        if (n < max)
            labels[n] = (struct cpprof_label){.key = key, .str = value};
        n++;
    }
    return n;
}

struct cpprof_labels *
cpprof_labels_new(const char *key, ...)
{
    struct cpprof_label few[FEW], *labels = few;
    struct cpprof_labels *set = NULL;
    va_list args;
    size_t n;
    CPPROF__EXEMPT;

    va_start(args, key);
    n = read_arguments(key, args, few, FEW);
    va_end(args);
    if (n == SIZE_MAX)
        return NULL;
    if (n > FEW) {
        labels = cpprof__calloc(n, sizeof *labels);
        va_start(args, key);
        if (labels)
            read_arguments(key, args, labels, n);
        va_end(args);
    }
    if (labels)
        set = merge(NULL, labels, n);
    if (labels != few)
        cpprof__free(labels);
    return set;
}

struct cpprof_labels *
cpprof_labels_ref(const struct cpprof_labels *set)
{
    struct cpprof_labels *shared = (struct cpprof_labels *)set;

    if (shared)
        add_relaxed(&shared->set.refs, 1);
    return shared;
}

void
cpprof_labels_free(struct cpprof_labels *set)
{
    if (set && __atomic_fetch_sub(&set->set.refs, 1, __ATOMIC_ACQ_REL) == 1)
        cpprof__labels_release(set);
}

void
cpprof__labels_inherited_free(const void *labels)
{
    cpprof_labels_free((struct cpprof_labels *)labels);
}

size_t
cpprof_labels_count(const struct cpprof_labels *set)
{
    return set ? set->n : 0;
}

const struct cpprof_label *
cpprof_labels_at(const struct cpprof_labels *set, size_t index)
{
    return set && index < set->n ? &set->labels[index] : NULL;
}

const struct cpprof_label *
cpprof_labels_find(const struct cpprof_labels *set, const char *key)
{
    size_t lo = 0, hi = set && key ? set->n : 0;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        int order = strcmp(set->labels[mid].key, key);

        if (!order)
            return &set->labels[mid];
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}
