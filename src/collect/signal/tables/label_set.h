/* SPDX-License-Identifier: MIT */
/*
 * The part of a label set that handlers and hooks read: bytes that never change
 * as long as somebody holds a reference. The rest is in labels/labels.h.
 *
 * A thread's current set is not freed before another one is current, so the
 * thread itself, also in a handler, may read it and take a hold on it.
 */
#ifndef COLLECT_SIGNAL_LABEL_SET_H
#define COLLECT_SIGNAL_LABEL_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpprof__label_set {
    uint32_t refs;
    uint32_t n_encoded;
    uint64_t hash;       /* of the encoded bytes */
    const char *encoded; /* all there is to know, in one form: equal sets have
                          * equal bytes */
};

/* Safety: AS. */
static inline bool
cpprof__label_sets_equal(const struct cpprof__label_set *a,
                         const struct cpprof__label_set *b)
{
    uint32_t i = 0;

    if (a == b)
        return true;
    if (a->hash != b->hash || a->n_encoded != b->n_encoded)
        return false;
    while (i < a->n_encoded && a->encoded[i] == b->encoded[i])
        i++;
    return i == a->n_encoded;
}

#endif
