/* SPDX-License-Identifier: MIT */
/*
 * What a drawing shows: chooses nodes by entropy, then leaves out edges that
 * other edges make redundant.
 *
 * A node scores high if it has much value of its own and its edges divide
 * evenly between many neighbours: such a node tells most. An edge over nodes
 * that were left out is redundant if another path leads from its begin to its
 * end.
 *
 * Source: internal/graph/graph.go EntropyOrder, selectTopNodes,
 * RemoveRedundantEdges.
 */
#include "report/dot/visual.h"

#include "base/status.h"
#include "own/memory.h"

#include <math.h>
#include <stdlib.h>

/* Tunable: edges for each node. More makes pictures that nobody can read and
 * Graphviz slow: with 80 nodes, 200 edges take a second, 300 ten, 600 a minute.
 * Less hides calls. */
#define EDGES_PER_NODE 2.5
#define LEAST_EDGES    200

/* ----------------------------------------------------------- entropy ---- */

/* The edges at one side of a node, added up. */
struct side {
    int64_t total; /* of the positive ones, and the node itself */
    double entropy;
    size_t n;
};

static void
add_entropy(struct side *side, int64_t weight)
{
    double part;

    if (!side->total)
        return;
    part = (double)cpprof__abs(weight) / (double)side->total;
    side->entropy += -part * log2(part);
}

static double
score_of(const struct side *side, int64_t self)
{
    struct side copy = *side;

    if (!side->n)
        return 1; /* where stacks begin or end is worth seeing */
    if (self > 0)
        add_entropy(&copy, self);
    return copy.entropy;
}

static void
sum_sides(const struct cpprof__graph *g, struct side *in, struct side *out)
{
    size_t i;

    for (i = 0; i < g->nodes.n; i++)
        out[i].total = g->nodes.at[i].flat;
    for (i = 0; i < g->edges.n; i++) {
        const struct cpprof__edge *e = &g->edges.at[i];
        int64_t weight = e->weight > 0 ? e->weight : 0;

        in[e->to].n++;
        out[e->from].n++;
        in[e->to].total = cpprof__add(in[e->to].total, weight);
        out[e->from].total = cpprof__add(out[e->from].total, weight);
    }
    for (i = 0; i < g->edges.n; i++) {
        const struct cpprof__edge *e = &g->edges.at[i];

        add_entropy(&in[e->to], e->weight);
        add_entropy(&out[e->from], e->weight);
    }
}

static enum cpprof_status
sort_by_entropy(struct cpprof__trimmed *t)
{
    size_t n = t->g.nodes.n + 1, i;
    struct side *in = cpprof__calloc(n, sizeof *in),
                *out = cpprof__calloc(n, sizeof *out);
    enum cpprof_status status;

    status = in && out ? CPPROF_OK : cpprof__fail_nomem(t->r->error);
    if (status == CPPROF_OK) {
        sum_sides(&t->g, in, out);
        for (i = 0; i < t->rows.n; i++) {
            struct cpprof__report_row *row = &t->rows.at[i];
            const struct cpprof__node *node = &t->g.nodes.at[row->node];
            double score = score_of(&in[row->node], 0) +
                           score_of(&out[row->node], node->flat);

            row->score = cpprof__add(
                cpprof__to_int64(score * (double)node->cum), node->flat);
            row->second_score = node->flat;
        }
        status = cpprof__trimmed_sort(t);
    }
    cpprof__free(in);
    cpprof__free(out);
    return status;
}

/* --------------------------------------------------------- selection ---- */

/* The number of rows that fit into -nodecount, where tags count like nodes. */
static size_t
rows_that_fit(const struct cpprof__visual *v)
{
    const struct cpprof__trimmed *t = &v->t;
    size_t n = 0, i;

    if (!t->nodecount)
        return t->rows.n;
    for (i = 0; i < t->rows.n && i < t->nodecount; i++) {
        size_t tags = cpprof__node_tags_count(&v->tags, t->rows.at[i].node);

        n += 1 + (tags < CPPROF__MOST_TAGS ? tags : CPPROF__MOST_TAGS);
        if (n >= t->nodecount)
            return i + 1;
    }
    return i;
}

static enum cpprof_status
choose(struct cpprof__visual *v)
{
    struct cpprof__trimmed *t = &v->t;
    size_t n = t->rows.n, before = n;
    enum cpprof_status status;

    if (t->nodecount && t->nodecount < n)
        n = t->nodecount;
    status = cpprof__node_tags_make(&v->tags, t, n);
    if (status != CPPROF_OK)
        return status;
    cpprof__trimmed_end(t, rows_that_fit(v));
    if (t->rows.n == before)
        return CPPROF_OK;
    status = cpprof__trimmed_edges(t);
    return status == CPPROF_OK ? sort_by_entropy(t) : status;
}

/* --------------------------------------------------- redundant edges ---- */

struct search {
    struct cpprof__visual *v;
    uint32_t *queue; /* nodes that lead to the end of the edge */
    uint32_t *seen;  /* by node: the last edge, + 1 */
};

/* Is there another way from an edge's begin to its end? */
static bool
has_other_way(struct search *s, uint32_t edge)
{
    const struct cpprof__calls *c = &s->v->calls;
    const struct cpprof__edge *e = cpprof__edge(c, edge);
    size_t head = 0, tail = 0, i;

    s->queue[tail++] = e->to;
    s->seen[e->to] = edge + 1;
    while (head < tail) {
        uint32_t node = s->queue[head++];

        for (i = c->in.first[node]; i < c->in.first[node + 1]; i++) {
            uint32_t in = c->in.list[i], from = cpprof__edge(c, in)->from;

            if (in == edge || s->v->redundant[in] || s->seen[from] == edge + 1)
                continue;
            if (from == e->from)
                return true;
            s->seen[from] = edge + 1;
            s->queue[tail++] = from;
        }
    }
    return false;
}

/* Drop edges to which there is another way: only those that lead over nodes
 * left out, and only the lightest of a node: one that is heavier than an edge
 * that stays would be missed. */
static enum cpprof_status
drop_redundant(struct cpprof__visual *v)
{
    const struct cpprof__calls *c = &v->calls;
    size_t n = v->t.g.nodes.n + 1, i, j;
    struct search s = {v, cpprof__malloc(n * sizeof *s.queue),
                       cpprof__calloc(n, sizeof *s.seen)};
    bool ok;

    v->redundant = cpprof__calloc(v->t.g.edges.n + 1, 1);
    ok = s.queue && s.seen && v->redundant;
    for (i = v->t.rows.n; ok && i; i--) {
        uint32_t node = v->t.rows.at[i - 1].node;

        for (j = c->in.first[node + 1]; j > c->in.first[node]; j--) {
            uint32_t edge = c->in.list[j - 1];

            if (!cpprof__edge(c, edge)->is_residual)
                break;
            if (has_other_way(&s, edge))
                v->redundant[edge] = 1;
        }
    }
    cpprof__free(s.queue);
    cpprof__free(s.seen);
    return ok ? CPPROF_OK : cpprof__fail_nomem(v->t.r->error);
}

/* ------------------------------------------------------------- whole ---- */

enum cpprof_status
cpprof__visual_make(struct cpprof__visual *v, struct cpprof__report *r)
{
    size_t n_dropped = 0, before;
    enum cpprof_status status;

    if (r->options->nodecount < 0)
        r->options->nodecount = 80;
    status = cpprof__trimmed_begin(&v->t, r, CPPROF__TRIM_TREE);
    before = v->t.rows.n;
    if (status == CPPROF_OK)
        status = cpprof__trimmed_edges(&v->t);
    if (status == CPPROF_OK)
        status = sort_by_entropy(&v->t);
    if (status == CPPROF_OK)
        status = choose(v);
    if (status == CPPROF_OK)
        status = cpprof__calls_make(&v->calls, &v->t, &n_dropped);
    /* As the reference counts them: where a limit on nodes was looked at and
     * left out none, small edges went before anyone counted. */
    if (!v->t.nodecount || v->t.rows.n < before)
        v->t.shown.n_edges_dropped = n_dropped;
    return status == CPPROF_OK ? drop_redundant(v) : status;
}

void
cpprof__visual_free(struct cpprof__visual *v)
{
    cpprof__calls_free(&v->calls);
    cpprof__node_tags_free(&v->tags);
    cpprof__trimmed_free(&v->t);
    cpprof__free(v->redundant);
}

/* --------------------------------------------------------- dense graphs -- */

size_t
cpprof__visual_limit_edges(struct cpprof__visual *v, size_t *n_left)
{
    size_t most = (size_t)((double)v->t.rows.n * EDGES_PER_NODE), n = 0, i, k;
    const struct cpprof__lists *in = &v->calls.in;
    size_t n_dropped = 0;

    if (most < LEAST_EDGES)
        most = LEAST_EDGES;
    for (i = 0; i < v->t.g.edges.n; i++) {
        k = in->first[v->t.g.edges.at[i].to];
        if (v->redundant[i])
            continue;
        /* The heaviest one into a node that is drawn stays. */
        while (v->redundant[in->list[k]])
            k++;
        if (n < most || in->list[k] == i) {
            n++;
            continue;
        }
        v->redundant[i] = 1;
        n_dropped++;
    }
    *n_left = n;
    return n_dropped;
}
