/* SPDX-License-Identifier: MIT */
#include "collect/signal/tables/label_numbers.h"

#include "arch/atomic.h"

/* A node's pc is up to 7 bytes, the first lowest, and how many above them: so
 * it is never 0. */
#define PIECE 7u

/* More than the largest set has; a bound on what is read elsewhere. */
#define PIECES_MAX 10000u

static uint64_t
piece_at(const char *bytes, uint32_t n)
{
    uint64_t piece = 0;

    if (n > PIECE)
        n = PIECE;
    __builtin_memcpy(&piece, bytes, n);
    return piece | (uint64_t)n << 56;
}

uint32_t
cpprof__label_set_number(struct cpprof__tree *tree, const void *wanted)
{
    const struct cpprof__label_set *set = wanted;
    uint32_t node = CPPROF__TREE_LABELS, at;

    if (!set || !set->n_encoded)
        return 0;
    for (at = 0; at < set->n_encoded && node; at += PIECE)
        node = cpprof__tree_add_piece(
            tree, node, piece_at(set->encoded + at, set->n_encoded - at));
    return node ? node : CPPROF__LABELS_LOST;
}

/* The nodes of a set, from its last on; 0: there is no more. */
static uint32_t
parent_of(const struct cpprof__tree *tree, uint32_t number, uint64_t *piece)
{
    const struct cpprof__tree_node *node = &tree->nodes[number];

    *piece = load_acquire(&node->pc);
    if (!*piece || *piece >> 56 > PIECE)
        return 0;
    return load_relaxed(&node->parent);
}

static size_t
count_bytes(const struct cpprof__tree *tree, uint32_t number)
{
    uint64_t piece;
    size_t n = 0, i;

    for (i = 0; i < PIECES_MAX && number; i++) {
        if (number == CPPROF__TREE_LABELS)
            return n;
        if (number >= CPPROF__TREE_NODES)
            return 0;
        number = parent_of(tree, number, &piece);
        n += piece >> 56;
    }
    return 0;
}

size_t
cpprof__label_set_bytes(const struct cpprof__tree *tree, uint32_t number,
                        char *to, size_t room)
{
    size_t n = count_bytes(tree, number), end = n;
    uint64_t piece;

    if (n > room)
        return n;
    while (end) {
        number = parent_of(tree, number, &piece);
        if (piece >> 56 > end || !piece)
            return 0; /* it is another one now */
        end -= piece >> 56;
        __builtin_memcpy(to + end, &piece, piece >> 56);
    }
    return n;
}
