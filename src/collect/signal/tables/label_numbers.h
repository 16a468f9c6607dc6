/* SPDX-License-Identifier: MIT */
/*
 * Label sets as handlers and hooks know them, and numbers for them. The encoded
 * bytes of a set are a path in the tree of stacks, seven bytes to a node, below
 * a root of their own; the number of its last node is the number of the set. So
 * equal sets have equal numbers, sets that begin alike share nodes, and whoever
 * has the tree has the sets: nobody holds the set that a program made.
 */
#ifndef COLLECT_SIGNAL_LABEL_NUMBERS_H
#define COLLECT_SIGNAL_LABEL_NUMBERS_H

#include "collect/signal/tables/stack_tree.h"

#include <stddef.h>
#include <stdint.h>

/*
 * The part of a label set that handlers and hooks read: bytes that never change
 * as long as somebody holds a reference. The rest is in labels/labels.h. A
 * thread's current set is not freed before another one is current, so the
 * thread itself, also in a handler, may read it and take a hold on it.
 */
struct cpprof__label_set {
    uint32_t refs;
    uint32_t n_encoded;
    uint64_t hash;       /* of the encoded bytes */
    const char *encoded; /* the labels in one form: equal sets have equal
                          * bytes */
};

/* In place of the number of a set that found no room, or that nobody needed
 * any more. */
#define CPPROF__LABELS_LOST UINT32_MAX

/* The number of a struct cpprof__label_set that is not freed meanwhile; 0 for
 * no set and for one without labels. Safety: AS, lock-free. */
uint32_t
cpprof__label_set_number(struct cpprof__tree *tree, const void *set);

/*
 * How many encoded bytes a set has, which are put to `to` when there is room
 * for them; 0: it is no set. Trusts nothing that it reads in the tree.
 */
size_t
cpprof__label_set_bytes(const struct cpprof__tree *tree, uint32_t number,
                        char *to, size_t room);

#endif
