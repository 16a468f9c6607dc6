/* SPDX-License-Identifier: MIT */
/*
 * A treap: by keys a search tree, by ranks a heap. Ranks are the mixed numbers
 * of nodes, so whatever order keys come in (units come in that of a file) the
 * tree is as deep as one that random keys made, some 3 log2 n.
 *
 * Source: R. Seidel, C. R. Aragon, "Randomized Search Trees", Algorithmica 16
 * (1996).
 */
#include "symbol/elf/tree.h"

#include "arch/atomic.h"
#include "arch/mix.h"
#include "own/memory.h"

#include <stddef.h>
#include <stdint.h>

struct node {
    const void *key; /* first: callers look at it */
    struct node *less, *more;
    uint64_t rank;
};

static struct node *
make_node(const void *key)
{
    static uint64_t n_nodes;
    struct node *node = cpprof__malloc(sizeof *node);
    uint64_t number = __atomic_add_fetch(&n_nodes, 1, __ATOMIC_RELAXED);

    if (node)
        *node = (struct node){key, NULL, NULL, cpprof__mix_u64(number)};
    return node;
}

void *
cpprof__tree_find(const void *key, void *const *root,
                  cpprof__tree_compare *compare)
{
    struct node *node = root ? *root : NULL;
    int order;

    while (node && (order = compare(key, node->key)) != 0)
        node = order < 0 ? node->less : node->more;
    return node;
}

/* Nodes below `from`, none of which has this key: those that are less go to
 * *less, the others to *more. */
static void
split(const void *key, struct node *from, struct node **less,
      struct node **more, cpprof__tree_compare *compare)
{
    while (from) {
        if (compare(key, from->key) < 0) {
            *more = from;
            more = &from->less;
            from = from->less;
        } else {
            *less = from;
            less = &from->more;
            from = from->more;
        }
    }
    *less = *more = NULL;
}

void *
cpprof__tree_search(const void *key, void **root, cpprof__tree_compare *compare)
{
    struct node **at = (struct node **)root, *node;

    if (!root)
        return NULL;
    node = cpprof__tree_find(key, root, compare);
    if (node)
        return node;
    node = make_node(key);
    if (!node)
        return NULL;
    while (*at && (*at)->rank >= node->rank)
        at = compare(key, (*at)->key) < 0 ? &(*at)->less : &(*at)->more;
    split(key, *at, &node->less, &node->more, compare);
    *at = node;
    return node;
}

/* Without recursion: what is less is turned to the top until nothing is. */
void
cpprof__tree_destroy(void *root, void (*free_key)(void *key))
{
    struct node *node = root, *next;

    while (node) {
        next = node->less;
        if (next) {
            node->less = next->more;
            next->more = node;
        } else {
            next = node->more;
            free_key((void *)(uintptr_t)node->key);
            cpprof__free(node);
        }
        node = next;
    }
}
