/* SPDX-License-Identifier: MIT */
/* Source: internal/graph/graph.go EdgeMap.Sort, TrimLowFrequencyEdges. */
#include "report/calls.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* Edges below the cutoff go, but only those into nodes that are listed. */
static size_t
drop_low(struct cpprof__trimmed *t, const uint8_t *listed)
{
    size_t kept = 0, i;

    for (i = 0; i < t->g.edges.n; i++) {
        const struct cpprof__edge *e = &t->g.edges.at[i];

        if (cpprof__abs(e->weight) >= t->edge_cutoff || !listed[e->to])
            t->g.edges.at[kept++] = *e;
    }
    i = t->g.edges.n - kept;
    t->g.edges.n = kept;
    return i;
}

static void
print_name(struct cpprof__calls *c, uint32_t node)
{
    if (c->n_name[node] != UINT32_MAX)
        return;
    c->name[node] = c->names.n;
    cpprof__node_name(&c->t->g, &c->t->g.nodes.at[node], &c->names);
    c->n_name[node] = (uint32_t)(c->names.n - c->name[node]);
}

static bool
print_names(struct cpprof__calls *c)
{
    const struct cpprof__graph *g = &c->t->g;
    size_t n = g->nodes.n + 1, i;

    c->name = calloc(n, sizeof *c->name);
    c->n_name = malloc(n * sizeof *c->n_name);
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

/* The order of two nodes; where their names are equal, by what they are made
 * of, so that the order is the same every time. */
static int
by_node(struct cpprof__calls *c, uint32_t a, uint32_t b)
{
    const struct cpprof__node *nodes = c->t->g.nodes.at;

    int order = 0;

    if (a != b)
        order =
            cpprof__node_compare(&c->t->g, &nodes[a], &nodes[b], &c->failed);
    /* Equal functions of a tree. */
    return order ? order : (a > b) - (a < b);
}

static int
compare(const void *x, const void *y, void *ctx)
{
    struct cpprof__calls *c = ctx;
    const struct cpprof__edge *a = x, *b = y;
    int64_t m = cpprof__abs(a->weight), n = cpprof__abs(b->weight);
    int order = (m < n) - (m > n);

    if (!order)
        order = by_name(c, a->from, b->from);
    if (!order)
        order = by_name(c, a->to, b->to);
    if (!order)
        order = by_node(c, a->from, b->from);
    return order ? order : by_node(c, a->to, b->to);
}

/* Lists of edges by one of their ends, in the order of the edges. */
static bool
make_lists(const struct cpprof__graph *g, size_t end,
           struct cpprof__edge_lists *l)
{
    size_t n = g->nodes.n, i;

    l->first = calloc(n + 2, sizeof *l->first);
    l->list = malloc((g->edges.n + 1) * sizeof *l->list);
    if (!l->first || !l->list)
        return false;
#define END(i) (*(const uint32_t *)((const char *)&g->edges.at[i] + end))
    for (i = 0; i < g->edges.n; i++)
        l->first[END(i) + 2]++;
    for (i = 2; i < n + 2; i++)
        l->first[i] += l->first[i - 1];
    for (i = 0; i < g->edges.n; i++)
        l->list[l->first[END(i) + 1]++] = (uint32_t)i;
#undef END
    return true;
}

static bool
sort(struct cpprof__calls *c, struct cpprof__graph *g)
{
    if (g->edges.n)
        qsort_r(g->edges.at, g->edges.n, sizeof *g->edges.at, compare, c);
    return !c->failed &&
           make_lists(g, offsetof(struct cpprof__edge, to), &c->in) &&
           make_lists(g, offsetof(struct cpprof__edge, from), &c->out);
}

enum cpprof_status
cpprof__calls_make(struct cpprof__calls *c, struct cpprof__trimmed *t,
                   size_t *n_dropped)
{
    uint8_t *listed = calloc(t->g.nodes.n + 1, 1);
    size_t n, i;
    bool ok;

    c->t = t;
    if (!listed)
        return cpprof__fail_nomem(t->r->error);
    for (i = 0; i < t->rows.n; i++)
        listed[t->rows.at[i].node] = 1;
    n = drop_low(t, listed);
    free(listed);
    if (n_dropped)
        *n_dropped = n;
    ok = print_names(c) && sort(c, &t->g);
    return ok ? CPPROF_OK : cpprof__fail_nomem(t->r->error);
}

void
cpprof__calls_free(struct cpprof__calls *c)
{
    free(c->in.first);
    free(c->in.list);
    free(c->out.first);
    free(c->out.list);
    free(c->name);
    free(c->n_name);
    cpprof__buffer_free(&c->names);
}
