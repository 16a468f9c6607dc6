/* SPDX-License-Identifier: MIT */
/*
 * Chooses and sorts the nodes that a report shows.
 *
 * The steps are those of the reference: collect the nodes that have a value,
 * drop those below the fraction, sort, keep the first so many. The name of a
 * node is printed once, into one buffer, before the nodes are sorted.
 *
 * Invariants: the order is total (value, name, other value, then the order of
 * the samples), so that the same profile gives the same report on every
 * machine.
 *
 * Source: internal/report/report.go newTrimmedGraph, selectOutputUnit.
 */
#include "report/graph/trimmed.h"

#include "base/status.h"
#include "own/memory.h"

#include <stdlib.h>
#include <string.h>

/* All nodes with any value. */
static enum cpprof_status
collect(struct cpprof__trimmed *t)
{
    bool drop = t->r->options->flags & PPROF_REPORT_DROP_NEGATIVE;
    size_t i;

    if (!CPPROF__ARRAY_ROOM(&t->rows, t->g.nodes.n))
        return cpprof__fail_nomem(t->r->error);
    for (i = 0; i < t->g.nodes.n; i++) {
        const struct cpprof__node *n = &t->g.nodes.at[i];
        bool is_negative = n->flat < 0 || (n->flat == 0 && n->cum < 0);

        if ((n->cum || n->flat) && !(drop && is_negative))
            t->rows.at[t->rows.n++] =
                (struct cpprof__report_row){.node = (uint32_t)i};
    }
    return CPPROF_OK;
}

/* Print the name of each row once; equal nodes of a tree share theirs. */
static enum cpprof_status
print_names(struct cpprof__trimmed *t)
{
    /* By node: the first row that has it, + 1. */
    size_t *known = cpprof__calloc(t->g.nodes.n + 1, sizeof *known), i;

    for (i = 0; known && i < t->rows.n; i++) {
        struct cpprof__report_row *row = &t->rows.at[i];
        uint32_t origin = t->g.nodes.at[row->node].origin;

        if (known[origin]) {
            row->name = t->rows.at[known[origin] - 1].name;
            row->n_name = t->rows.at[known[origin] - 1].n_name;
            continue;
        }
        known[origin] = i + 1;
        row->name = t->names.n;
        cpprof__node_name(&t->g, &t->g.nodes.at[row->node], &t->names);
        row->n_name = (uint32_t)(t->names.n - row->name);
    }
    cpprof__free(known);
    return !known || t->names.failed ? cpprof__fail_nomem(t->r->error)
                                     : CPPROF_OK;
}

static int
by_size(int64_t a, int64_t b)
{
    uint64_t x = (uint64_t)cpprof__abs(a), y = (uint64_t)cpprof__abs(b);

    /* The reference compares them signed, and so does this: the least number
     * has no absolute value and sorts last. */
    return ((int64_t)x < (int64_t)y) - ((int64_t)x > (int64_t)y);
}

/* Largest first, then by name, then by the other value. */
static int
compare(const void *x, const void *y, void *ctx)
{
    struct cpprof__trimmed *t = ctx;
    const struct cpprof__report_row *a = x, *b = y;
    int order = by_size(a->score, b->score);

    if (!order && (a->name != b->name || a->n_name != b->n_name)) {
        order = memcmp(t->names.data + a->name, t->names.data + b->name,
                       a->n_name < b->n_name ? a->n_name : b->n_name);
        if (!order)
            order = (a->n_name > b->n_name) - (a->n_name < b->n_name);
    }
    if (!order)
        order = by_size(a->second_score, b->second_score);
    if (!order)
        order = cpprof__node_compare(&t->g, &t->g.nodes.at[a->node],
                                     &t->g.nodes.at[b->node], &t->failed);
    /* Equal functions of a tree: in the order of the samples. */
    return order ? order : (a->node > b->node) - (a->node < b->node);
}

enum cpprof_status
cpprof__trimmed_sort(struct cpprof__trimmed *t)
{
    if (t->rows.n)
        qsort_r(t->rows.at, t->rows.n, sizeof *t->rows.at, compare, t);
    return t->failed ? cpprof__fail_nomem(t->r->error) : CPPROF_OK;
}

/* Leave out nodes below -nodefraction of the total. */
static enum cpprof_status
choose(struct cpprof__trimmed *t)
{
    const struct pprof_report_options *o = t->r->options;
    int64_t flat_total = 0;
    size_t kept = 0, i;

    for (i = 0; i < t->rows.n; i++)
        flat_total =
            cpprof__add(flat_total, cpprof__report_row_node(t, i)->flat);
    if (!(o->flags & PPROF_REPORT_NO_TRIM)) {
        t->node_cutoff = cpprof__cutoff(flat_total, o->nodefraction);
        t->edge_cutoff = cpprof__cutoff(flat_total, o->edgefraction);
        t->nodecount = o->nodecount > 0 ? (size_t)o->nodecount : 0;
    }
    for (i = 0; i < t->rows.n; i++)
        if (t->node_cutoff <= 0 ||
            cpprof__abs(cpprof__report_row_node(t, i)->cum) >= t->node_cutoff)
            t->rows.at[kept++] = t->rows.at[i];
    t->shown.n_low_dropped = t->rows.n - kept;
    t->rows.n = kept;
    t->rebuilt = t->shown.n_low_dropped != 0;
    t->shown.n_before = t->rows.n;
    return print_names(t);
}

void
cpprof__select_unit(struct cpprof__trimmed *t, bool whole)
{
    struct cpprof__report *r = t->r;
    double ratio = 1 / r->options->divide_by, scaled;
    int64_t least = 0, most = r->total;
    const char *unit, *unit_of_most;
    size_t i;

    if (strcmp(r->output_unit, "minimum") != 0 || !t->rows.n)
        return;
    for (i = 0; i < t->rows.n; i++) {
        const struct cpprof__node *n = cpprof__report_row_node(t, i);
        int64_t v = cpprof__abs(cpprof__mean(n->flat, n->flat_div));

        if (!v)
            v = cpprof__abs(cpprof__mean(n->cum, n->cum_div));
        if (v > 0 && (!least || v < least))
            least = v;
    }
    if (!least)
        least = most;
    if (ratio > 0 && ratio != 1) {
        least = cpprof__to_int64((double)least * ratio);
        most = cpprof__to_int64((double)most * ratio);
    }
    unit = cpprof__scale(least, r->sample_unit, "minimum", &scaled);
    unit_of_most = cpprof__scale(most, r->sample_unit, "minimum", &scaled);
    least = (int64_t)((uint64_t)least * 100);
    if (strcmp(unit, unit_of_most) != 0 && least < most && !whole)
        unit = cpprof__scale(least, r->sample_unit, "minimum", &scaled);
    r->output_unit = *unit ? unit : r->sample_unit;
}

uint8_t *
cpprof__trimmed_kept(const struct cpprof__trimmed *t)
{
    uint8_t *kept = cpprof__malloc(t->g.nodes.n + 1);
    size_t i;

    if (!kept)
        return NULL;
    memset(kept, !t->rebuilt, t->g.nodes.n + 1);
    for (i = 0; i < t->rows.n; i++)
        kept[t->rows.at[i].node] = 1;
    return kept;
}

enum cpprof_status
cpprof__trimmed_edges(struct cpprof__trimmed *t)
{
    uint8_t *kept = cpprof__trimmed_kept(t);
    enum cpprof_status status;

    if (!kept)
        return cpprof__fail_nomem(t->r->error);
    t->g.edges.n = 0;
    status = cpprof__graph_add_edges(&t->g, kept, kept, t->r->error);
    cpprof__free(kept);
    return status;
}

enum cpprof_status
cpprof__trimmed_begin(struct cpprof__trimmed *t, struct cpprof__report *r,
                      unsigned how)
{
    enum cpprof_status status;

    t->r = r;
    t->g.p = r->p;
    t->g.value = r->value;
    t->g.divisor = r->divisor;
    status = cpprof__graph_make(&t->g, r->options, how, r->error);
    if (status == CPPROF_OK && how & CPPROF__TRIM_TREE &&
        r->options->flags & PPROF_REPORT_CALL_TREE)
        status = cpprof__call_tree(&t->g, r->error);
    if (status == CPPROF_OK)
        status = cpprof__graph_add_values(&t->g, r->error);
    if (status == CPPROF_OK)
        status = collect(t);
    return status == CPPROF_OK ? choose(t) : status;
}

void
cpprof__trimmed_end(struct cpprof__trimmed *t, size_t n)
{
    size_t i;

    t->rebuilt |= n < t->rows.n;
    t->rows.n = n;
    t->shown.n_nodes = n;
    t->shown.flat_sum = 0;
    for (i = 0; i < n; i++) {
        const struct cpprof__node *node = cpprof__report_row_node(t, i);

        t->shown.flat_sum = cpprof__add(
            t->shown.flat_sum, cpprof__mean(node->flat, node->flat_div));
    }
}

enum cpprof_status
cpprof__trimmed_make(struct cpprof__trimmed *t, struct cpprof__report *r,
                     unsigned how)
{
    enum cpprof_status status = cpprof__trimmed_begin(t, r, how);
    bool cum = r->options->flags & PPROF_REPORT_CUM;
    size_t i;

    if (status != CPPROF_OK)
        return status;
    for (i = 0; i < t->rows.n; i++) {
        const struct cpprof__node *n = cpprof__report_row_node(t, i);

        t->rows.at[i].score = cum ? n->cum : n->flat;
        t->rows.at[i].second_score = cum ? n->flat : n->cum;
    }
    status = cpprof__trimmed_sort(t);
    if (status == CPPROF_OK)
        cpprof__trimmed_end(t, t->nodecount && t->nodecount < t->rows.n
                                   ? t->nodecount
                                   : t->rows.n);
    return status;
}

void
cpprof__trimmed_free(struct cpprof__trimmed *t)
{
    cpprof__graph_free(&t->g);
    CPPROF__ARRAY_FREE(&t->rows);
    cpprof__buffer_free(&t->names);
}
