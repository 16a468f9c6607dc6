/* SPDX-License-Identifier: MIT */
/*
 * -top: a line for each node, the largest first, marked as inlined where it
 * is.
 *
 * "(inline)" and "(partial-inline)" depend on edges that are not below the
 * cutoff, and finding edges means a look at every sample. So an upper bound
 * comes first: an edge of inlined calls gets at most what its locations have.
 * Only nodes for which that bound reaches the cutoff are watched in the second
 * pass over the samples.
 *
 * Source: internal/report/report.go printText; internal/graph/graph.go.
 */
#include "own/memory.h"
#include "report/graph/trimmed.h"

#include "base/status.h"

#include <stdlib.h>

enum {
    CALL_INLINE = 1,
    CALL_OTHER = 2,
};

/* A call that is inlined somewhere, and an upper bound of its value. */
struct call {
    uint32_t to;
    uint32_t from; /* CPPROF__NO_NODE: may be any, outside of the location */
    int64_t most;
};

struct table {
    struct cpprof__trimmed t;
    uint8_t *found; /* by node: has edges of inlined calls, of others */
    CPPROF__ARRAY(struct call) calls;
};

static int64_t
add_up(int64_t a, int64_t b)
{
    int64_t sum;

    return a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum) ? INT64_MAX
                                                                : sum;
}

/* List the inlined calls of a location to nodes that are kept: from the next
 * one outwards that is kept. */
static bool
list_calls(struct table *table, const uint8_t *kept, size_t location)
{
    const struct cpprof__trimmed *t = &table->t;
    const uint32_t *nodes = t->g.location_nodes.at;
    size_t first = t->g.first_node[location];
    size_t i = t->g.first_node[location + 1] - 1;
    uint32_t begin = t->g.only_node[location] & ~CPPROF__SEVERAL;
    uint32_t from = CPPROF__NO_NODE;

    if (!CPPROF__ARRAY_ROOM(&table->calls, i - first))
        return false;
    if (kept[nodes[i]])
        from = nodes[i];
    while (i-- > first) {
        if (!kept[nodes[i]])
            continue;
        if (from != nodes[i])
            table->calls.at[table->calls.n++] =
                (struct call){nodes[i], from, t->g.several_sums[begin / 2]};
        from = nodes[i];
    }
    return true;
}

/* By node; those of any caller come last. */
static int
compare_calls(const void *x, const void *y)
{
    const struct call *a = x, *b = y;

    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
    return (a->from > b->from) - (a->from < b->from);
}

/* The calls of a node, which are n: the most that any caller's may get. */
static int64_t
most_of(const struct call *calls, size_t n)
{
    int64_t most = 0, of_caller = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        if (i && calls[i].from != calls[i - 1].from)
            of_caller = 0;
        of_caller = add_up(of_caller, calls[i].most);
        if (calls[i].from == CPPROF__NO_NODE)
            most = add_up(most, calls[i].most);
        else if (of_caller > most)
            most = of_caller;
    }
    return most;
}

/*
 * Watch those nodes that may have an edge of inlined calls that is not below
 * the cutoff; true if there are any. An edge gets no more than the locations
 * in which its calls are inlined, if no value is negative; so most nodes are
 * known to have none without looking at the samples again.
 */
static bool
choose_watched(struct table *table, uint8_t *watched)
{
    const struct cpprof__trimmed *t = &table->t;
    bool all = t->g.any_negative || !t->edge_cutoff, any = false;
    size_t first, end;

    if (table->calls.n)
        qsort(table->calls.at, table->calls.n, sizeof *table->calls.at,
              compare_calls);
    for (first = 0; first < table->calls.n; first = end) {
        const struct call *call = &table->calls.at[first];

        for (end = first + 1; end < table->calls.n; end++)
            if (table->calls.at[end].to != call->to)
                break;
        watched[call->to] = all || most_of(call, end - first) >= t->edge_cutoff;
        any |= watched[call->to];
    }
    return any;
}

/* Which of the nodes that are shown were inlined, always or sometimes. */
static enum cpprof_status
find_calls(struct table *table)
{
    struct cpprof__trimmed *t = &table->t;
    size_t n = t->g.nodes.n + 1, i;
    uint8_t *kept = cpprof__trimmed_kept(t), *watched = cpprof__calloc(n, 1);
    enum cpprof_status status = CPPROF_OK;
    bool ok;

    table->found = cpprof__calloc(n, 1);
    ok = kept && watched && table->found;
    for (i = 0; ok && i < t->g.p->locations.n; i++)
        if (t->g.only_node[i] & CPPROF__SEVERAL)
            ok = list_calls(table, kept, i);
    if (!ok)
        status = cpprof__fail_nomem(t->r->error);
    else if (choose_watched(table, watched))
        status = cpprof__graph_add_edges(&t->g, kept, watched, t->r->error);
    for (i = 0; i < t->g.edges.n; i++) {
        const struct cpprof__edge *e = &t->g.edges.at[i];

        if (cpprof__abs(e->weight) >= t->edge_cutoff)
            table->found[e->to] |= e->is_inline ? CALL_INLINE : CALL_OTHER;
    }
    cpprof__free(kept);
    cpprof__free(watched);
    return status;
}

static void
print_row(const struct table *table, const struct cpprof__report_row *row,
          int64_t flat_sum)
{
    const struct cpprof__trimmed *t = &table->t;
    struct cpprof__buffer *out = &t->r->out;
    uint8_t found = table->found[row->node];

    cpprof__print_row_values(t->r, &t->g.nodes.at[row->node], flat_sum);
    cpprof__buffer_printf(out, "  ");
    cpprof__buffer_append(out, t->names.data + row->name, row->n_name);
    cpprof__buffer_printf(out, "%s\n",
                          !(found & CALL_INLINE) ? ""
                          : found & CALL_OTHER   ? " (partial-inline)"
                                                 : " (inline)");
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
        const struct cpprof__node *n = cpprof__report_row_node(t, i);

        flat_sum = cpprof__add(flat_sum, cpprof__mean(n->flat, n->flat_div));
        print_row(table, &t->rows.at[i], flat_sum);
    }
}

enum cpprof_status
cpprof__top(struct cpprof__report *r)
{
    struct table table = {0};
    enum cpprof_status status = cpprof__trimmed_make(&table.t, r, 0);

    if (status == CPPROF_OK)
        status = find_calls(&table);
    if (status == CPPROF_OK) {
        cpprof__select_unit(&table.t, false);
        print(&table);
    }
    cpprof__trimmed_free(&table.t);
    cpprof__free(table.found);
    CPPROF__ARRAY_FREE(&table.calls);
    return status;
}
