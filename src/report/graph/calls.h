/* SPDX-License-Identifier: MIT */
/*
 * The calls between the nodes of a trimmed graph: for each node the edges that
 * lead into it and out of it, the largest first, then by name.
 */
#ifndef REPORT_CALLS_H
#define REPORT_CALLS_H

#include "report/graph/trimmed.h"

/* Where a node stands among those with names: equal names have equal ones. */
struct cpprof__rank {
    uint32_t name, node;
};

struct cpprof__calls {
    const struct cpprof__trimmed *t;
    struct cpprof__lists in, out; /* edges, by the node that they end in, and
                                   * by the one that they begin in */
    /* The printed names of all nodes that have edges or a row. */
    struct cpprof__buffer names;
    size_t *name;               /* offset, by node */
    uint32_t *n_name;           /* bytes, by node */
    struct cpprof__rank *ranks; /* by node */
    bool failed;                /* no memory for comparing */
};

/* Order the edges of t's graph, without those that are too small; how many
 * those were is *n_dropped, which may be NULL. c is zero bytes; free it in any
 * case. */
enum cpprof_status
cpprof__calls_make(struct cpprof__calls *c, struct cpprof__trimmed *t,
                   size_t *n_dropped);
void
cpprof__calls_free(struct cpprof__calls *c);

/* An edge's value as it is shown. */
static inline const struct cpprof__edge *
cpprof__edge(const struct cpprof__calls *c, uint32_t edge)
{
    return &c->t->g.edges.at[edge];
}

/* Append the printed name of a node. */
static inline void
cpprof__calls_name(const struct cpprof__calls *c, uint32_t node,
                   struct cpprof__buffer *out)
{
    cpprof__buffer_append(out, c->names.data + c->name[node], c->n_name[node]);
}

#endif
