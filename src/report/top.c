/* SPDX-License-Identifier: MIT */
/*
 * -top: a line for each node, the largest first.
 *
 * The reference builds its graph anew whenever it leaves out nodes. All that
 * this changes for a table is which edges there are, and those only tell
 * whether a node was inlined; so here values are added up once, and edges once
 * the nodes that will be shown are known.
 */
#include "report/report.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* A node that may be shown. */
struct row {
    uint32_t node;
    uint32_t n_name;
    size_t name; /* offset in names */
};

struct table {
    struct cpprof__report *r;
    struct cpprof__graph g;
    CPPROF__ARRAY(struct row) rows;
    struct cpprof__buffer names;
    struct cpprof__shown shown;
    bool rebuilt; /* nodes were left out, and edges lead around them */
    /* By node: has edges of inlined calls, of others. */
    uint8_t *calls;
    int64_t edge_cutoff;
    bool failed; /* no memory for comparing */
};

enum {
    CALL_INLINE = 1,
    CALL_OTHER = 2,
};

static bool
is_negative(const struct cpprof__node *n)
{
    return n->flat < 0 || (n->flat == 0 && n->cum < 0);
}

/* All nodes with any value. */
static enum cpprof_status
collect(struct table *t)
{
    bool drop = t->r->options->flags & CPPROF_REPORT_DROP_NEGATIVE;
    size_t i;

    if (!CPPROF__ARRAY_ROOM(&t->rows, t->g.nodes.n))
        return cpprof__fail_nomem(t->r->error);
    for (i = 0; i < t->g.nodes.n; i++) {
        const struct cpprof__node *n = &t->g.nodes.at[i];

        if ((n->cum || n->flat) && !(drop && is_negative(n)))
            t->rows.at[t->rows.n++] = (struct row){.node = (uint32_t)i};
    }
    return CPPROF_OK;
}

/* Leave out what is below -nodefraction of the total. */
static void
drop_low(struct table *t, int64_t cutoff)
{
    size_t kept = 0, i;

    for (i = 0; i < t->rows.n; i++)
        if (cpprof__abs(t->g.nodes.at[t->rows.at[i].node].cum) >= cutoff)
            t->rows.at[kept++] = t->rows.at[i];
    t->shown.n_low_dropped = t->rows.n - kept;
    t->rows.n = kept;
}

static enum cpprof_status
print_names(struct table *t)
{
    size_t i;

    for (i = 0; i < t->rows.n; i++) {
        struct row *row = &t->rows.at[i];

        row->name = t->names.n;
        cpprof__node_name(&t->g, &t->g.nodes.at[row->node], &t->names);
        row->n_name = (uint32_t)(t->names.n - row->name);
    }
    return t->names.failed ? cpprof__fail_nomem(t->r->error) : CPPROF_OK;
}

static int
by_size(int64_t a, int64_t b)
{
    uint64_t x = (uint64_t)cpprof__abs(a), y = (uint64_t)cpprof__abs(b);

    /* The reference compares them signed, and so does this: the least number
     * has no absolute value and sorts last. */
    return ((int64_t)x < (int64_t)y) - ((int64_t)x > (int64_t)y);
}

static int
by_name(const struct table *t, const struct row *a, const struct row *b)
{
    const uint8_t *names = t->names.data;
    int order = memcmp(names + a->name, names + b->name,
                       a->n_name < b->n_name ? a->n_name : b->n_name);

    return order ? order : (a->n_name > b->n_name) - (a->n_name < b->n_name);
}

/* Largest first, then by name, then by the other value. */
static int
compare(const void *x, const void *y, void *ctx)
{
    struct table *t = ctx;
    const struct row *a = x, *b = y;
    const struct cpprof__node *m = &t->g.nodes.at[a->node];
    const struct cpprof__node *n = &t->g.nodes.at[b->node];
    bool cum = t->r->options->flags & CPPROF_REPORT_CUM;
    int order = cum ? by_size(m->cum, n->cum) : by_size(m->flat, n->flat);

    if (!order)
        order = by_name(t, a, b);
    if (!order)
        order = cum ? by_size(m->flat, n->flat) : by_size(m->cum, n->cum);
    return order ? order : cpprof__node_compare(&t->g, m, n, &t->failed);
}

/* Choose the rows, in order. */
static enum cpprof_status
choose(struct table *t)
{
    const struct cpprof_report_options *o = t->r->options;
    bool trim = !(o->flags & CPPROF_REPORT_NO_TRIM);
    int64_t flat_total = 0, cutoff;
    enum cpprof_status status;
    size_t i;

    for (i = 0; i < t->rows.n; i++)
        flat_total =
            cpprof__add(flat_total, t->g.nodes.at[t->rows.at[i].node].flat);
    cutoff = trim ? cpprof__cutoff(flat_total, o->nodefraction) : 0;
    t->edge_cutoff = trim ? cpprof__cutoff(flat_total, o->edgefraction) : 0;
    if (cutoff > 0)
        drop_low(t, cutoff);
    t->rebuilt = t->shown.n_low_dropped != 0;
    t->shown.n_before = t->rows.n;
    status = print_names(t);
    if (status != CPPROF_OK)
        return status;
    if (t->rows.n)
        qsort_r(t->rows.at, t->rows.n, sizeof *t->rows.at, compare, t);
    if (t->failed)
        return cpprof__fail_nomem(t->r->error);
    if (trim && o->nodecount > 0 && (size_t)o->nodecount < t->rows.n) {
        t->rows.n = (size_t)o->nodecount;
        t->rebuilt = true;
    }
    t->shown.n_nodes = t->rows.n;
    return CPPROF_OK;
}

/* May the node have an edge of inlined calls that is not below the cutoff? No
 * edge has more than all of them together, if none is negative. */
static bool
may_be_inlined(const struct table *t, uint32_t node)
{
    return t->g.any_negative || !t->edge_cutoff ||
           t->g.nodes.at[node].inlined >= t->edge_cutoff;
}

/* Which of the nodes that are shown were inlined, always or sometimes. */
static enum cpprof_status
find_calls(struct table *t)
{
    size_t n = t->g.nodes.n + 1, i;
    uint8_t *kept = malloc(n), *watched = calloc(n, 1), any = 0;
    enum cpprof_status status = CPPROF_OK;

    t->calls = calloc(n, 1);
    if (!kept || !watched || !t->calls)
        status = cpprof__fail_nomem(t->r->error);
    if (status == CPPROF_OK)
        memset(kept, !t->rebuilt, n);
    for (i = 0; i < t->rows.n && status == CPPROF_OK; i++) {
        uint32_t node = t->rows.at[i].node;

        kept[node] = 1;
        any |= watched[node] = may_be_inlined(t, node);
    }
    if (any)
        status = cpprof__graph_add_edges(&t->g, kept, watched, t->r->error);
    for (i = 0; i < t->g.edges.n; i++) {
        const struct cpprof__edge *e = &t->g.edges.at[i];

        if (cpprof__abs(e->weight) >= t->edge_cutoff)
            t->calls[e->to] |= e->is_inline ? CALL_INLINE : CALL_OTHER;
    }
    free(kept);
    free(watched);
    return status;
}

/*
 * The unit of the whole table: that of its smallest value, or one that lets it
 * be 0.01 where the largest is in another unit.
 */
static void
select_unit(struct table *t)
{
    struct cpprof__report *r = t->r;
    double ratio = 1 / r->options->divide_by, scaled;
    int64_t least = 0, most = r->total;
    const char *unit, *unit_of_most;
    size_t i;

    if (strcmp(r->output_unit, "minimum") != 0 || !t->rows.n)
        return;
    for (i = 0; i < t->rows.n; i++) {
        const struct cpprof__node *n = &t->g.nodes.at[t->rows.at[i].node];
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
    if (strcmp(unit, unit_of_most) != 0 && least < most)
        unit = cpprof__scale(least, r->sample_unit, "minimum", &scaled);
    r->output_unit = *unit ? unit : r->sample_unit;
}

static const char *
inline_text(uint8_t calls)
{
    if (!(calls & CALL_INLINE))
        return "";
    return calls & CALL_OTHER ? " (partial-inline)" : " (inline)";
}

static void
print_row(struct table *t, const struct row *row, int64_t flat_sum)
{
    const struct cpprof__node *n = &t->g.nodes.at[row->node];
    int64_t flat = cpprof__mean(n->flat, n->flat_div);
    int64_t cum = cpprof__mean(n->cum, n->cum_div);
    char flat_text[CPPROF__LABEL_TEXT], cum_text[CPPROF__LABEL_TEXT];
    char percents[3][CPPROF__PERCENT_TEXT];
    struct cpprof__buffer *out = &t->r->out;

    cpprof__format_value(t->r, flat, flat_text);
    cpprof__format_value(t->r, cum, cum_text);
    cpprof__percentage(percents[0], flat, t->r->total);
    cpprof__percentage(percents[1], flat_sum, t->r->total);
    cpprof__percentage(percents[2], cum, t->r->total);
    cpprof__buffer_printf(out, "%10s %s %s %10s %s  ", flat_text, percents[0],
                          percents[1], cum_text, percents[2]);
    cpprof__buffer_append(out, t->names.data + row->name, row->n_name);
    cpprof__buffer_printf(out, "%s\n", inline_text(t->calls[row->node]));
}

static void
print(struct table *t)
{
    int64_t flat_sum = 0;
    size_t i;

    for (i = 0; i < t->rows.n; i++) {
        const struct cpprof__node *n = &t->g.nodes.at[t->rows.at[i].node];

        t->shown.flat_sum =
            cpprof__add(t->shown.flat_sum, cpprof__mean(n->flat, n->flat_div));
    }
    cpprof__heading(t->r, &t->shown);
    cpprof__buffer_printf(&t->r->out, "%10s %5s%% %5s%% %10s %5s%%\n", "flat",
                          "flat", "sum", "cum", "cum");
    for (i = 0; i < t->rows.n; i++) {
        const struct cpprof__node *n = &t->g.nodes.at[t->rows.at[i].node];

        flat_sum = cpprof__add(flat_sum, cpprof__mean(n->flat, n->flat_div));
        print_row(t, &t->rows.at[i], flat_sum);
    }
}

enum cpprof_status
cpprof__top(struct cpprof__report *r)
{
    struct table t = {.r = r};
    struct cpprof__graph_options options = {
        r->options->granularity, r->options->flags, r->options->trim_path,
        r->options->source_path};
    enum cpprof_status status;

    t.g.p = r->p;
    t.g.value = r->value;
    t.g.divisor = r->divisor;
    status = cpprof__graph_make(&t.g, &options, r->error);
    if (status == CPPROF_OK)
        status = cpprof__graph_add_values(&t.g, r->error);
    if (status == CPPROF_OK)
        status = collect(&t);
    if (status == CPPROF_OK)
        status = choose(&t);
    if (status == CPPROF_OK)
        status = find_calls(&t);
    if (status == CPPROF_OK) {
        select_unit(&t);
        print(&t);
    }
    cpprof__graph_free(&t.g);
    CPPROF__ARRAY_FREE(&t.rows);
    cpprof__buffer_free(&t.names);
    free(t.calls);
    return status;
}
