/* SPDX-License-Identifier: MIT */
/*
 * Stacks as a tree from the root: what a flame graph draws.
 *
 * It is built from the root, and nothing below the cutoff is visited. So it
 * takes memory in proportion to what is shown and not to the number of stacks.
 */
#ifndef REPORT_STACK_TREE_H
#define REPORT_STACK_TREE_H

#include "report/flame/stacks.h"

/* A function at one position of the tree. The children of boxes.at[i] lie
 * together, the largest first, behind all boxes that are nearer to the root. */
struct cpprof__box {
    uint32_t node; /* of the graph; CPPROF__NO_NODE: the root of all */
    uint32_t first_child, n_children;
    bool is_inline; /* every call of it from here was inlined */
    /* Sums of the positive and, without their sign, of the negative values of
     * all samples through it. Both are wide enough for any sum. */
    unsigned __int128 positive, negative;
    size_t first_item, n_items; /* stack_tree_make()'s own */
};

struct cpprof__stack_tree {
    CPPROF__ARRAY(struct cpprof__box) boxes; /* the first is the root */
    bool is_cut; /* boxes were left out at the limit */
};

/* What is left out. */
struct cpprof__stack_cut {
    double fraction;  /* boxes below this part of all */
    size_t max_boxes; /* boxes below deeper ones, once there are as many */
};

/* tree is zero bytes; free it in any case. */
enum cpprof_status
cpprof__stack_tree_make(struct cpprof__stack_tree *tree,
                        const struct cpprof__graph *g,
                        const struct cpprof__stack_cut *cut,
                        struct cpprof_error *error);
void
cpprof__stack_tree_free(struct cpprof__stack_tree *tree);

static inline unsigned __int128
cpprof__box_weight(const struct cpprof__box *box)
{
    return box->positive + box->negative;
}

#endif
