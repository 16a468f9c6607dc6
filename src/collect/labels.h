/* SPDX-License-Identifier: MIT */
/*
 * Label sets: immutable once they are a thread's current set, and never freed
 * while a sample may still point at them (today: never).
 */
#ifndef COLLECT_LABELS_H
#define COLLECT_LABELS_H

#include "base/buffer.h"
#include "collect/builder.h"

struct cpprof__label_set {
    size_t n;
    struct cpprof__builder_label labels[];
};

/* Make set, which may be NULL, the current one of the calling thread. Threads
 * created from now on inherit it. Safety: AS. */
void
cpprof__labels_set_current(const struct cpprof__label_set *set);

/* To and from bytes that mean the same in another process. */
void
cpprof__labels_encode(struct cpprof__buffer *out,
                      const struct cpprof__label_set *set);

/* Up to max labels; their strings are slices of data, which ends in a
 * terminator of its own. Returns how many. */
size_t
cpprof__labels_decode(const char *data, size_t n,
                      struct cpprof__builder_label *labels, size_t max);

#endif
