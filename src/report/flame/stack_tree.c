/* SPDX-License-Identifier: MIT */
/*
 * Builds the tree of boxes breadth first. Each box has a run of items, one for
 * each of its samples, which say how far that sample's stack has been read. To
 * make the children of a box, its run is sorted by the next node of each stack.
 * Large children get their part of the run. The rest moves to the end and is
 * not looked at again.
 */
#include "own/memory.h"
#include "report/flame/stacks.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* A sample and the part of its stack that is not read yet. */
struct item {
    uint32_t sample;
    struct cpprof__stack_rest rest;
};

/* A child while its box is looked into. */
struct child {
    struct cpprof__box box;
    bool kept;
};

struct maker {
    const struct cpprof__graph *g;
    struct cpprof__stack_tree *tree;
    const struct cpprof__stack_cut *cut;
    unsigned __int128 least; /* weight of a box that is kept */
    struct item *items, *sorted;
    uint32_t *child_of; /* by item of the run: its child; NO_CHILD: none */
    uint32_t *child;    /* by node: its child of this box, where seen says so */
    uint32_t *seen;     /* by node: the last box that has it, + 1 */
    CPPROF__ARRAY(struct child) children; /* of this box */
    CPPROF__ARRAY(uint32_t) order;        /* of the large ones of them */
};

#define NO_CHILD UINT32_MAX

static void
add_value(unsigned __int128 *positive, unsigned __int128 *negative,
          int64_t value)
{
    if (value > 0)
        *positive += (uint64_t)value;
    else
        *negative += -(uint64_t)value;
}

static int64_t
value_of(const struct maker *m, const struct item *item)
{
    return cpprof__values(m->g->p, item->sample)[m->g->value];
}

/* ---------------------------------------------------------- children ---- */

/* Tunable. So many samples ahead the next frame of one is asked for: memory is
 * slow, and the samples of a box lie far apart in it. (Not inlined, gcc leaves
 * the call out.) */
#define AHEAD 8

static inline __attribute__((always_inline)) void
ask_for(const struct maker *m, const struct cpprof__box *box, size_t i)
{
    const struct pprof_profile *p = m->g->p;
    const struct item *items = m->items + box->first_item;

    if (i + 2 * AHEAD < box->n_items) {
        __builtin_prefetch(&p->samples.at[items[i + 2 * AHEAD].sample]);
        __builtin_prefetch(cpprof__values(p, items[i + 2 * AHEAD].sample));
    }
    if (i + AHEAD < box->n_items)
        __builtin_prefetch(
            &p->frames.at[p->samples.at[items[i + AHEAD].sample].first_frame +
                          items[i + AHEAD].rest.n_frames]);
}

/* Read the next node of all items of a box. */
static bool
count_children(struct maker *m, uint32_t at)
{
    struct cpprof__box *box = &m->tree->boxes.at[at];
    uint32_t over = m->cut->folds ? box->node : CPPROF__NO_NODE;
    size_t i;

    m->children.n = 0;
    for (i = 0; i < box->n_items; i++) {
        struct item *item = &m->items[box->first_item + i];
        struct cpprof__box *child;
        uint32_t node;
        bool is_inline;

        ask_for(m, box, i);
        m->child_of[i] = NO_CHILD;
        if (!cpprof__stack_step_over(m->g, m->cut->order, item->sample,
                                     &item->rest, over, &node, &is_inline)) {
            add_value(&box->self_positive, &box->self_negative,
                      value_of(m, item));
            continue;
        }
        if (m->seen[node] != at + 1) {
            if (!CPPROF__ARRAY_ROOM(&m->children, 1))
                return false;
            m->seen[node] = at + 1;
            m->child[node] = (uint32_t)m->children.n;
            m->children.at[m->children.n++] =
                (struct child){{.node = node, .is_inline = true}, false};
        }
        m->child_of[i] = m->child[node];
        child = &m->children.at[m->child_of[i]].box;
        child->n_items++;
        child->is_inline &= is_inline;
        add_value(&child->positive, &child->negative, value_of(m, item));
    }
    return true;
}

static int
compare(const void *x, const void *y, void *ctx)
{
    const struct child *children = ctx;
    const struct cpprof__box *a = &children[*(const uint32_t *)x].box;
    const struct cpprof__box *b = &children[*(const uint32_t *)y].box;
    unsigned __int128 m = cpprof__box_weight(a), n = cpprof__box_weight(b);

    if (m != n)
        return m < n ? 1 : -1;
    return (a->node > b->node) - (a->node < b->node);
}

/* The weight of the boxes that are kept below this one. */
static void
set_least(struct maker *m, uint32_t at)
{
    m->least =
        (unsigned __int128)((double)cpprof__box_weight(&m->tree->boxes.at[at]) *
                            m->cut->fraction);
    if (!m->least)
        m->least = 1;
}

/* Is the child to be looked into? Above the box that is enlarged, whose depth
 * is then its number, only the one that leads there is. */
static bool
is_wanted(const struct maker *m, uint32_t at, const struct child *child)
{
    if (at < m->cut->n_way)
        return child->box.node == m->cut->way[at];
    return cpprof__box_weight(&child->box) >= m->least;
}

/* The large children, in their order. */
static bool
order_children(struct maker *m, uint32_t at)
{
    size_t i;

    if (at == m->cut->n_way)
        set_least(m, at);

    m->order.n = 0;
    if (!CPPROF__ARRAY_ROOM(&m->order, m->children.n))
        return false;
    for (i = 0; i < m->children.n; i++)
        if (is_wanted(m, at, &m->children.at[i]))
            m->order.at[m->order.n++] = (uint32_t)i;
    if (m->order.n)
        qsort_r(m->order.at, m->order.n, sizeof *m->order.at, compare,
                m->children.at);
    return true;
}

/* Make boxes of them. */
static bool
keep_children(struct maker *m, uint32_t at)
{
    struct cpprof__stack_tree *tree = m->tree;
    size_t n = m->order.n, first = tree->boxes.at[at].first_item, i;

    if (tree->boxes.n + n > m->cut->max_boxes) {
        tree->is_cut = true;
        return true;
    }
    if (!CPPROF__ARRAY_ROOM(&tree->boxes, n))
        return false;
    tree->boxes.at[at].first_child = (uint32_t)tree->boxes.n;
    tree->boxes.at[at].n_children = (uint32_t)n;
    for (i = 0; i < n; i++) {
        struct child *child = &m->children.at[m->order.at[i]];

        child->kept = true;
        child->box.first_item = first;
        first += child->box.n_items;
        tree->boxes.at[tree->boxes.n++] = child->box;
    }
    return true;
}

/* Sort the run of a box by its children; what none of them has is lost. */
static void
sort_items(struct maker *m, uint32_t at)
{
    const struct cpprof__box *box = &m->tree->boxes.at[at];
    struct item *items = m->items + box->first_item;
    size_t n = 0, i;

    for (i = 0; i < box->n_items; i++) {
        struct child *child;

        if (m->child_of[i] == NO_CHILD)
            continue;
        child = &m->children.at[m->child_of[i]];
        if (!child->kept)
            continue;
        m->sorted[child->box.first_item++ - box->first_item] = items[i];
        n++;
    }
    if (n)
        memcpy(items, m->sorted, n * sizeof *items);
}

/* -------------------------------------------------------------- tree ---- */

/* The box of all samples with a value. */
static bool
add_root(struct maker *m)
{
    const struct pprof_profile *p = m->g->p;
    struct cpprof__box *root = CPPROF__ARRAY_ADD(&m->tree->boxes);
    struct item item;
    size_t i;

    if (!root)
        return false;
    *root = (struct cpprof__box){.node = CPPROF__NO_NODE};
    for (i = 0; i < p->samples.n; i++) {
        item.sample = (uint32_t)i;
        if (!value_of(m, &item) ||
            !cpprof__stack_start(m->g, m->cut->order, m->cut->pivots, i,
                                 &item.rest))
            continue;
        add_value(&root->positive, &root->negative, value_of(m, &item));
        m->items[root->n_items++] = item;
    }
    return true;
}

enum cpprof_status
cpprof__stack_tree_make(struct cpprof__stack_tree *tree,
                        const struct cpprof__graph *g,
                        const struct cpprof__stack_cut *cut,
                        struct cpprof_error *error)
{
    size_t n = g->p->samples.n + 1, n_nodes = g->nodes.n + 1;
    struct maker m = {
        .g = g,
        .tree = tree,
        .cut = cut,
        .items = cpprof__malloc(n * sizeof *m.items),
        .sorted = cpprof__malloc(n * sizeof *m.sorted),
        .child_of = cpprof__malloc(n * sizeof *m.child_of),
        .child = cpprof__malloc(n_nodes * sizeof *m.child),
        .seen = cpprof__calloc(n_nodes, sizeof *m.seen),
    };
    bool ok =
        m.items && m.sorted && m.child_of && m.child && m.seen && add_root(&m);
    uint32_t i;

    for (i = 0; ok && i < tree->boxes.n; i++) {
        ok = count_children(&m, i) && order_children(&m, i) &&
             keep_children(&m, i);
        if (ok)
            sort_items(&m, i);
    }
    cpprof__free(m.items);
    cpprof__free(m.sorted);
    cpprof__free(m.child_of);
    cpprof__free(m.child);
    cpprof__free(m.seen);
    CPPROF__ARRAY_FREE(&m.children);
    CPPROF__ARRAY_FREE(&m.order);
    return ok ? CPPROF_OK : cpprof__fail_nomem(error);
}

void
cpprof__stack_tree_free(struct cpprof__stack_tree *tree)
{
    CPPROF__ARRAY_FREE(&tree->boxes);
}
