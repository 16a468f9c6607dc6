/* SPDX-License-Identifier: MIT */
/*
 * Whole stacks, as -collapsed, -json and -flamegraph show them: of the nodes
 * that granularity makes, from the root to the leaf, recursion and all.
 */
#ifndef REPORT_STACKS_H
#define REPORT_STACKS_H

#include "report/graph.h"
#include "report/report.h"

/* Make the nodes of a report. What has no function is named by its address. g
 * is zero bytes; free it in any case. */
enum cpprof_status
cpprof__stacks_graph(struct cpprof__graph *g, struct cpprof__report *r);

/* Append a node's name: that of other reports, or "[FILE <0xADDRESS>]". */
void
cpprof__stacks_name(const struct cpprof__graph *g,
                    const struct cpprof__node *node,
                    struct cpprof__buffer *out);

/* ------------------------------------------------------- one by one ---- */

/* The part of a sample's stack that is not read yet. */
struct cpprof__stack_rest {
    uint32_t n_frames; /* the last of them may be begun */
    uint32_t n_nodes;  /* left in it; 0: not begun */
};

static inline struct cpprof__stack_rest
cpprof__stack_begin(const struct cpprof__graph *g, size_t sample)
{
    return (struct cpprof__stack_rest){g->p->samples.at[sample].n_frames, 0};
}

/* The next node, from the root on, and whether its call was inlined; false at
 * the end. */
static inline bool
cpprof__stack_next(const struct cpprof__graph *g, size_t sample,
                   struct cpprof__stack_rest *rest, uint32_t *node,
                   bool *is_inline)
{
    const struct pprof_profile *p = g->p;
    size_t location, n;

    if (!rest->n_frames)
        return false;
    location =
        p->frames.at[p->samples.at[sample].first_frame + rest->n_frames - 1];
    n = g->first_node[location + 1] - g->first_node[location];
    if (!rest->n_nodes)
        rest->n_nodes = (uint32_t)n;
    *is_inline = rest->n_nodes < n;
    *node = g->location_nodes.at[g->first_node[location] + --rest->n_nodes];
    if (!rest->n_nodes)
        rest->n_frames--;
    return true;
}

/* The node that was read last, once more: the way back, to the root. */
static inline bool
cpprof__stack_back(const struct cpprof__graph *g, size_t sample,
                   struct cpprof__stack_rest *rest, uint32_t *node,
                   bool *is_inline)
{
    const struct cpprof__sample *s = &g->p->samples.at[sample];
    size_t location, n;

    if (!rest->n_nodes) {
        if (rest->n_frames == s->n_frames)
            return false;
        rest->n_frames++;
    }
    location = g->p->frames.at[s->first_frame + rest->n_frames - 1];
    n = g->first_node[location + 1] - g->first_node[location];
    *node = g->location_nodes.at[g->first_node[location] + rest->n_nodes++];
    *is_inline = rest->n_nodes < n;
    if (rest->n_nodes == n)
        rest->n_nodes = 0;
    return true;
}

/* Set *rest to where a stack begins in that order; pivots says of each node
 * whether it is one. False: the stack has none. */
bool
cpprof__stack_start(const struct cpprof__graph *g,
                    enum cpprof__stack_order order, const uint8_t *pivots,
                    size_t sample, struct cpprof__stack_rest *rest);

static inline bool
cpprof__stack_step(const struct cpprof__graph *g,
                   enum cpprof__stack_order order, size_t sample,
                   struct cpprof__stack_rest *rest, uint32_t *node,
                   bool *is_inline)
{
    return order == CPPROF__FROM_ROOT || order == CPPROF__CALLEES
               ? cpprof__stack_next(g, sample, rest, node, is_inline)
               : cpprof__stack_back(g, sample, rest, node, is_inline);
}

/* The same, past all that are `over`, the node that was read before;
 * CPPROF__NO_NODE: past none. */
static inline bool
cpprof__stack_step_over(const struct cpprof__graph *g,
                        enum cpprof__stack_order order, size_t sample,
                        struct cpprof__stack_rest *rest, uint32_t over,
                        uint32_t *node, bool *is_inline)
{
    do
        if (!cpprof__stack_step(g, order, sample, rest, node, is_inline))
            return false;
    while (*node == over);
    return true;
}

/* ------------------------------------------------------------ equal ---- */

/* Stacks of samples with different labels differ. */
#define CPPROF__STACKS_BY_LABELS 1u
/* Stacks in which different calls were inlined differ. */
#define CPPROF__STACKS_BY_INLINE 2u

/* Stacks that differ, each with the values of all of its samples. */
struct cpprof__stacks {
    const struct cpprof__graph *g;
    uint32_t flags;
    CPPROF__ARRAY(uint32_t) samples; /* the first sample of each */
    CPPROF__ARRAY(int64_t) values;   /* as many each as a sample has */
    struct cpprof__index index;
};

/* s is zero bytes; free it in any case. Samples whose values are all 0 are
 * left out. */
enum cpprof_status
cpprof__stacks_make(struct cpprof__stacks *s, const struct cpprof__graph *g,
                    uint32_t flags, struct cpprof_error *error);
void
cpprof__stacks_free(struct cpprof__stacks *s);

/* ---------------------------------------------------- stack_tree.c ------- */

/*
 * Stacks as a tree from the root: what a flame graph draws. It is built from
 * the root, and nothing below the cutoff is visited. So it takes memory in
 * proportion to what is shown and not to the number of stacks.
 */

/* A function at one position of the tree. The children of boxes.at[i] lie
 * together, the largest first, behind all boxes that are nearer to the root. */
struct cpprof__box {
    uint32_t node; /* of the graph; CPPROF__NO_NODE: the root of all */
    uint32_t first_child, n_children;
    bool is_inline; /* every call of it from here was inlined */
    /* Sums of the positive and, without their sign, of the negative values of
     * all samples through it. Both are wide enough for any sum. */
    unsigned __int128 positive, negative;
    /* The part of it whose stacks end here. */
    unsigned __int128 self_positive, self_negative;
    size_t first_item, n_items; /* stack_tree_make()'s own */
};

struct cpprof__stack_tree {
    CPPROF__ARRAY(struct cpprof__box) boxes; /* the first is the root */
    bool is_cut; /* boxes were left out at the limit */
};

/* The limits of a tree. */
struct cpprof__stack_cut {
    double fraction;  /* boxes below this part of all */
    size_t max_boxes; /* boxes below deeper ones, once there are as many */
    enum cpprof__stack_order order;
    bool folds;            /* calls of a function by itself are one box */
    const uint8_t *pivots; /* by node; of the last two orders */
    /* The nodes that lead from the root to the box that is enlarged: nothing
     * beside it is visited, and `fraction` is of it. */
    const uint32_t *way;
    size_t n_way;
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

/* ----------------------------------------------------------- json.c ------- */

/*
 * Append a string with its quotes. Bytes that are not UTF-8 become U+FFFD.
 * What means something in HTML, or ends a line of JavaScript, is escaped, so
 * that the text may stand inside of a page's <script>. Source: RFC 8259,
 * section 7.
 */
void
cpprof__json_text(struct cpprof__buffer *out, const char *text, size_t n);

#endif
