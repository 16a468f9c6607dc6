/* SPDX-License-Identifier: MIT */
#include "report/dot/visual.h"

/* Tunable: edges for each node. More makes pictures that nobody can read and
 * Graphviz slow: with 80 nodes, 200 edges take a second, 300 ten, 600 a minute.
 * Less hides calls. */
#define EDGES_PER_NODE 2.5
#define LEAST_EDGES    200

/* Is an edge the heaviest one into its node that is drawn? */
static bool
is_first(const struct cpprof__visual *v, uint32_t edge)
{
    const struct cpprof__edge_lists *in = &v->calls.in;
    uint32_t to = cpprof__edge(&v->calls, edge)->to;
    size_t i;

    for (i = in->first[to]; i < in->first[to + 1]; i++)
        if (!v->redundant[in->list[i]])
            return in->list[i] == edge;
    return false;
}

size_t
cpprof__visual_limit_edges(struct cpprof__visual *v, size_t *n_left)
{
    size_t most = (size_t)((double)v->t.rows.n * EDGES_PER_NODE), n = 0, i;
    size_t n_dropped = 0;

    if (most < LEAST_EDGES)
        most = LEAST_EDGES;
    for (i = 0; i < v->t.g.edges.n; i++) {
        if (v->redundant[i])
            continue;
        if (n < most || is_first(v, (uint32_t)i)) {
            n++;
            continue;
        }
        v->redundant[i] = 1;
        n_dropped++;
    }
    *n_left = n;
    return n_dropped;
}
