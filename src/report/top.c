/* SPDX-License-Identifier: MIT */
/* -top: a line for each node, the largest first. */
#include "report/trimmed.h"

#include "base/status.h"

#include <stdlib.h>

struct table {
    struct cpprof__trimmed t;
    /* By node: has edges of inlined calls, of others. */
    uint8_t *calls;
};

enum {
    CALL_INLINE = 1,
    CALL_OTHER = 2,
};

/* May the node have an edge of inlined calls that is not below the cutoff? No
 * edge has more than all of them together, if none is negative. */
static bool
may_be_inlined(const struct cpprof__trimmed *t, uint32_t node)
{
    return t->g.any_negative || !t->edge_cutoff ||
           t->g.nodes.at[node].inlined >= t->edge_cutoff;
}

/* Which of the nodes that are shown were inlined, always or sometimes. */
static enum cpprof_status
find_calls(struct table *table)
{
    struct cpprof__trimmed *t = &table->t;
    size_t n = t->g.nodes.n + 1, i;
    uint8_t *kept = cpprof__trimmed_kept(t), *watched = calloc(n, 1), any = 0;
    enum cpprof_status status = CPPROF_OK;

    table->calls = calloc(n, 1);
    if (!kept || !watched || !table->calls)
        status = cpprof__fail_nomem(t->r->error);
    for (i = 0; i < t->rows.n && status == CPPROF_OK; i++) {
        uint32_t node = t->rows.at[i].node;

        any |= watched[node] = may_be_inlined(t, node);
    }
    if (any)
        status = cpprof__graph_add_edges(&t->g, kept, watched, t->r->error);
    for (i = 0; i < t->g.edges.n; i++) {
        const struct cpprof__edge *e = &t->g.edges.at[i];

        if (cpprof__abs(e->weight) >= t->edge_cutoff)
            table->calls[e->to] |= e->is_inline ? CALL_INLINE : CALL_OTHER;
    }
    free(kept);
    free(watched);
    return status;
}

static const char *
inline_text(uint8_t calls)
{
    if (!(calls & CALL_INLINE))
        return "";
    return calls & CALL_OTHER ? " (partial-inline)" : " (inline)";
}

static void
print_row(const struct table *table, const struct cpprof__row *row,
          int64_t flat_sum)
{
    const struct cpprof__trimmed *t = &table->t;
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
    cpprof__buffer_printf(out, "%s\n", inline_text(table->calls[row->node]));
}

static void
print(const struct table *table)
{
    const struct cpprof__trimmed *t = &table->t;
    int64_t flat_sum = 0;
    size_t i;

    cpprof__heading(t->r, &t->shown);
    cpprof__buffer_printf(&t->r->out, "%10s %5s%% %5s%% %10s %5s%%\n", "flat",
                          "flat", "sum", "cum", "cum");
    for (i = 0; i < t->rows.n; i++) {
        const struct cpprof__node *n = cpprof__row_node(t, i);

        flat_sum = cpprof__add(flat_sum, cpprof__mean(n->flat, n->flat_div));
        print_row(table, &t->rows.at[i], flat_sum);
    }
}

enum cpprof_status
cpprof__top(struct cpprof__report *r)
{
    static const struct cpprof__trim everything = {0};
    struct table table = {0};
    enum cpprof_status status = cpprof__trimmed_make(&table.t, r, &everything);

    if (status == CPPROF_OK)
        status = find_calls(&table);
    if (status == CPPROF_OK) {
        cpprof__select_unit(&table.t);
        print(&table);
    }
    cpprof__trimmed_free(&table.t);
    free(table.calls);
    return status;
}
