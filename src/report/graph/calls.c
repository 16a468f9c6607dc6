/* SPDX-License-Identifier: MIT */
/*
 * The edges of a trimmed graph, listed by both of their ends and sorted.
 *
 * Nodes are ranked by name once; edges, which are many more, are then compared
 * by the ranks of their ends. Edges below the cutoff are dropped before, but
 * only those that lead to a node which is listed, as the reference does.
 *
 * Source: internal/graph/graph.go EdgeMap.Sort, TrimLowFrequencyEdges.
 */
#include "report/graph/calls.h"

#include "base/status.h"
#include "own/memory.h"

#include <stdlib.h>
#include <string.h>

static void
print_name(struct cpprof__calls *c, uint32_t node)
{
    uint32_t origin = c->t->g.nodes.at[node].origin;

    if (c->n_name[origin] == UINT32_MAX) {
        c->name[origin] = c->names.n;
        cpprof__node_name(&c->t->g, &c->t->g.nodes.at[origin], &c->names);
        c->n_name[origin] = (uint32_t)(c->names.n - c->name[origin]);
    }
    c->name[node] = c->name[origin];
    c->n_name[node] = c->n_name[origin];
}

static bool
print_names(struct cpprof__calls *c)
{
    const struct cpprof__graph *g = &c->t->g;
    size_t n = g->nodes.n + 1, i;

    c->name = cpprof__calloc(n, sizeof *c->name);
    c->n_name = cpprof__malloc(n * sizeof *c->n_name);
    if (!c->name || !c->n_name)
        return false;
    memset(c->n_name, 0xff, n * sizeof *c->n_name);
    for (i = 0; i < c->t->rows.n; i++)
        print_name(c, c->t->rows.at[i].node);
    for (i = 0; i < g->edges.n; i++) {
        print_name(c, g->edges.at[i].from);
        print_name(c, g->edges.at[i].to);
    }
    return !c->names.failed;
}

static int
by_name(const struct cpprof__calls *c, uint32_t a, uint32_t b)
{
    uint32_t n = c->n_name[a] < c->n_name[b] ? c->n_name[a] : c->n_name[b];
    int order;

    if (a == b)
        return 0;
    order = memcmp(c->names.data + c->name[a], c->names.data + c->name[b], n);
    return order
               ? order
               : (c->n_name[a] > c->n_name[b]) - (c->n_name[a] < c->n_name[b]);
}

/* Where names are equal, by what the nodes are made of, so that the order is
 * the same every time. */
static int
compare_nodes(const void *x, const void *y, void *ctx)
{
    struct cpprof__calls *c = ctx;
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    const struct cpprof__node *nodes = c->t->g.nodes.at;
    int order = by_name(c, a, b);

    return order || a == b ? order
                           : cpprof__node_compare(&c->t->g, &nodes[a],
                                                  &nodes[b], &c->failed);
}

/* Sort the nodes that have names, but of those of a tree that are equal only
 * the first, and number them: edges are many more, and are then compared by
 * numbers.
 */
static bool
make_ranks(struct cpprof__calls *c)
{
    const struct cpprof__graph *g = &c->t->g;
    size_t n = 0, i;
    uint32_t *nodes = cpprof__malloc((g->nodes.n + 1) * sizeof *nodes),
             name = 0;

    c->ranks = cpprof__calloc(g->nodes.n + 1, sizeof *c->ranks);
    if (!nodes || !c->ranks) {
        cpprof__free(nodes);
        return false;
    }
    for (i = 0; i < g->nodes.n; i++)
        if (c->n_name[i] != UINT32_MAX && g->nodes.at[i].origin == i)
            nodes[n++] = (uint32_t)i;
    if (n)
        qsort_r(nodes, n, sizeof *nodes, compare_nodes, c);
    for (i = 0; i < n; i++) {
        if (i && by_name(c, nodes[i - 1], nodes[i]) != 0)
            name = (uint32_t)i;
        c->ranks[nodes[i]] = (struct cpprof__rank){name, (uint32_t)i};
    }
    for (i = 0; i < g->nodes.n; i++)
        c->ranks[i] = c->ranks[g->nodes.at[i].origin];
    cpprof__free(nodes);
    return !c->failed;
}

static int
compare(const void *x, const void *y, void *ctx)
{
    const struct cpprof__edge *a = x, *b = y;
    const struct cpprof__rank *ranks = ctx, *af = &ranks[a->from],
                              *bf = &ranks[b->from], *at = &ranks[a->to],
                              *bt = &ranks[b->to];
    int64_t m = cpprof__abs(a->weight), n = cpprof__abs(b->weight);

    if (m != n)
        return m < n ? 1 : -1;
    if (af->name != bf->name)
        return af->name < bf->name ? -1 : 1;
    if (at->name != bt->name)
        return at->name < bt->name ? -1 : 1;
    if (af->node != bf->node)
        return af->node < bf->node ? -1 : 1;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    if (at->node != bt->node)
        return at->node < bt->node ? -1 : 1;
    return (a->to > b->to) - (a->to < b->to);
}

enum cpprof_status
cpprof__calls_make(struct cpprof__calls *c, struct cpprof__trimmed *t,
                   size_t *n_dropped)
{
    uint8_t *listed = cpprof__calloc(t->g.nodes.n + 1, 1);
    size_t kept = 0, i;
    bool ok;

    c->t = t;
    if (!listed)
        return cpprof__fail_nomem(t->r->error);
    for (i = 0; i < t->rows.n; i++)
        listed[t->rows.at[i].node] = 1;
    /* Edges below the cutoff go, but only those into nodes that are listed. */
    for (i = 0; i < t->g.edges.n; i++) {
        const struct cpprof__edge *e = &t->g.edges.at[i];

        if (cpprof__abs(e->weight) >= t->edge_cutoff || !listed[e->to])
            t->g.edges.at[kept++] = *e;
    }
    cpprof__free(listed);
    if (n_dropped)
        *n_dropped = t->g.edges.n - kept;
    t->g.edges.n = kept;
    ok = print_names(c) && make_ranks(c);
    if (ok && t->g.edges.n)
        qsort_r(t->g.edges.at, t->g.edges.n, sizeof *t->g.edges.at, compare,
                c->ranks);
    ok = ok &&
         cpprof__lists_make(&c->in, t->g.edges.at, t->g.edges.n,
                            sizeof *t->g.edges.at,
                            offsetof(struct cpprof__edge, to), t->g.nodes.n) &&
         cpprof__lists_make(&c->out, t->g.edges.at, t->g.edges.n,
                            sizeof *t->g.edges.at,
                            offsetof(struct cpprof__edge, from), t->g.nodes.n);
    return ok ? CPPROF_OK : cpprof__fail_nomem(t->r->error);
}

void
cpprof__calls_free(struct cpprof__calls *c)
{
    cpprof__lists_free(&c->in);
    cpprof__lists_free(&c->out);
    cpprof__free(c->name);
    cpprof__free(c->n_name);
    cpprof__free(c->ranks);
    cpprof__buffer_free(&c->names);
}
