/* SPDX-License-Identifier: MIT */
/*
 * For the page of `cpprof http`: the table of -top as JSON, with what a
 * comparison needs, and what there is in a profile to choose from.
 *
 * The rows are those of -top in its order whose names match view->search, and
 * at most view->max_rows of them.
 * In a comparison each has the values of the base as well, which are those of
 * the samples with a negative value: flat and cum are then new minus old.
 */
#include "own/memory.h"
#include "report/flame/boxes.h"
#include "report/graph/trimmed.h"

#include "base/status.h"

#include <inttypes.h>
#include <stdlib.h>

/* What the base has in a node, without the sign. */
struct old {
    int64_t flat, cum;
    size_t sample; /* the last one that was counted in cum, + 1 */
};

struct table {
    struct cpprof__trimmed t;
    struct old *old; /* by node */
    bool is_diff;
};

/* ---------------------------------------------------------------- base ---- */

static void
add_sample(struct table *table, size_t sample, int64_t value)
{
    const struct cpprof__graph *g = &table->t.g;
    struct cpprof__stack_rest rest = cpprof__stack_begin(g, sample);
    struct old *last = NULL;
    uint32_t node;
    bool is_inline;

    while (cpprof__stack_next(g, sample, &rest, &node, &is_inline)) {
        last = &table->old[node];
        if (last->sample != sample + 1)
            last->cum = cpprof__add(last->cum, value);
        last->sample = sample + 1;
    }
    if (last)
        last->flat = cpprof__add(last->flat, value);
}

/* Add up what samples of the base have. A mean has none. */
static enum cpprof_status
add_base(struct table *table)
{
    const struct cpprof__graph *g = &table->t.g;
    size_t i;

    table->old = cpprof__calloc(g->nodes.n + 1, sizeof *table->old);
    if (!table->old)
        return cpprof__fail_nomem(table->t.r->error);
    for (i = 0; i < g->p->samples.n; i++) {
        int64_t value = cpprof__values(g->p, i)[g->value];

        if (value >= 0)
            continue;
        table->is_diff = true;
        add_sample(table, i, cpprof__abs(value));
    }
    table->is_diff &= g->divisor == CPPROF__NO_DIVISOR;
    return CPPROF_OK;
}

/* ---------------------------------------------------------------- rows ---- */

enum column { FLAT, CUM, OLD_FLAT, OLD_CUM };

static int64_t
cell(const struct table *table, size_t row, enum column column)
{
    const struct cpprof__node *n = cpprof__report_row_node(&table->t, row);
    const struct old *old = &table->old[table->t.rows.at[row].node];

    switch (column) {
    case FLAT:
        return cpprof__mean(n->flat, n->flat_div);
    case CUM:
        return cpprof__mean(n->cum, n->cum_div);
    case OLD_FLAT:
        return old->flat;
    default:
        return old->cum;
    }
}

static void
print_column(struct table *table, const char *name, enum column column,
             size_t n)
{
    struct cpprof__sink *sink = &table->t.r->sink;
    size_t i;

    cpprof__buffer_printf(&sink->buffer, ",\n\"%s\":[", name);
    for (i = 0; i < n; i++) {
        cpprof__buffer_printf(&sink->buffer, "%s%" PRId64, i ? "," : "",
                              cell(table, i, column));
        cpprof__sink_mind(sink);
    }
    cpprof__buffer_printf(&sink->buffer, "]");
}

static void
print_names(struct table *table, size_t n)
{
    const struct cpprof__trimmed *t = &table->t;
    struct cpprof__sink *sink = &t->r->sink;
    size_t i;

    cpprof__buffer_printf(&sink->buffer, ",\n\"names\":[");
    for (i = 0; i < n; i++) {
        const struct cpprof__report_row *row = &t->rows.at[i];

        cpprof__buffer_printf(&sink->buffer, i ? ",\n" : "\n");
        cpprof__json_text(&sink->buffer,
                          row->n_name ? (char *)t->names.data + row->name : "",
                          row->n_name);
        cpprof__sink_mind(sink);
    }
    cpprof__buffer_printf(&sink->buffer, "]");
}

static void
print(struct table *table)
{
    struct cpprof__report *r = table->t.r;
    size_t n = table->t.rows.n;

    if (r->view->max_rows && r->view->max_rows < n)
        n = r->view->max_rows;
    cpprof__print_data_head(r, &r->sink.buffer);
    cpprof__buffer_printf(&r->sink.buffer, ",\"rows\":%zu,\"diff\":%s",
                          table->t.rows.n, table->is_diff ? "true" : "false");
    print_names(table, n);
    print_column(table, "flat", FLAT, n);
    print_column(table, "cum", CUM, n);
    if (table->is_diff) {
        print_column(table, "old_flat", OLD_FLAT, n);
        print_column(table, "old_cum", OLD_CUM, n);
    }
    cpprof__buffer_printf(&r->sink.buffer, "}\n");
}

/* Leave the rows whose names match. */
static enum cpprof_status
search(struct cpprof__trimmed *t)
{
    struct cpprof__regexp *matching;
    enum cpprof_status status = cpprof__regexp_make(
        t->r->view->search, "search", &matching, t->r->error);
    size_t i, n = 0;

    if (status != CPPROF_OK)
        return status;
    for (i = 0; i < t->rows.n; i++) {
        const struct cpprof__report_row *row = &t->rows.at[i];

        if (cpprof__regexp_matches(
                matching, row->n_name ? (char *)t->names.data + row->name : "",
                row->n_name))
            t->rows.at[n++] = *row;
    }
    t->rows.n = n;
    status = cpprof__regexp_status(matching, t->r->error);
    cpprof__regexp_free(matching);
    return status;
}

enum cpprof_status
cpprof__table_view(struct cpprof__report *r)
{
    struct table table = {.is_diff = false};
    enum cpprof_status status = cpprof__trimmed_make(&table.t, r, 0);

    if (status == CPPROF_OK && r->view->search)
        status = search(&table.t);
    if (status == CPPROF_OK)
        status = add_base(&table);
    if (status == CPPROF_OK)
        print(&table);
    cpprof__trimmed_free(&table.t);
    cpprof__free(table.old);
    return status;
}

/* ------------------------------------------------------------- profile ---- */

static void
print_string(struct cpprof__report *r, uint32_t string)
{
    const struct cpprof__strings *s = &r->p->strings;

    cpprof__json_text(&r->sink.buffer, cpprof__strings_text(s, string),
                      cpprof__strings_n(s, string));
}

/* The keys of all labels, each once. */
static bool
print_keys(struct cpprof__report *r)
{
    const struct pprof_profile *p = r->p;
    bool *seen = cpprof__calloc(p->strings.table.n + 1, 1);
    const char *comma = "";
    size_t set, n, i;

    for (set = 0; seen && set < p->labels.sets.n; set++) {
        const struct pprof_label *l =
            cpprof__label_set(&p->labels, (uint32_t)set, &n);

        for (i = 0; i < n; i++) {
            if (seen[l[i].key])
                continue;
            seen[l[i].key] = true;
            cpprof__buffer_printf(&r->sink.buffer, "%s", comma);
            print_string(r, l[i].key);
            comma = ",";
        }
    }
    cpprof__free(seen);
    return seen;
}

enum cpprof_status
cpprof__profile_view(struct cpprof__report *r)
{
    const struct pprof_profile *p = r->p;
    struct cpprof__buffer *out = &r->sink.buffer;
    bool is_diff = false, ok;
    size_t i;

    for (i = 0; i < p->samples.n && !is_diff; i++)
        is_diff = cpprof__values(p, i)[r->value] < 0;
    cpprof__print_data_head(r, out);
    cpprof__buffer_printf(out,
                          ",\"samples\":%zu,\"diff\":%s,\"index\":%zu,"
                          "\"types\":[",
                          p->samples.n, is_diff ? "true" : "false", r->value);
    for (i = 0; i < p->sample_types.n; i++) {
        cpprof__buffer_printf(out, i ? ",[" : "[");
        print_string(r, p->sample_types.at[i].type);
        cpprof__buffer_printf(out, ",");
        print_string(r, p->sample_types.at[i].unit);
        cpprof__buffer_printf(out, "]");
    }
    cpprof__buffer_printf(out, "],\"keys\":[");
    ok = print_keys(r);
    cpprof__buffer_printf(out, "]}\n");
    return ok ? CPPROF_OK : cpprof__fail_nomem(r->error);
}

enum cpprof_status
cpprof__first_view(struct cpprof__report *r)
{
    enum cpprof_status status;

    cpprof__buffer_printf(&r->sink.buffer, "{\"profile\":");
    status = cpprof__profile_view(r);
    cpprof__buffer_printf(&r->sink.buffer, ",\"boxes\":");
    if (status == CPPROF_OK)
        status = cpprof__boxes_view(r);
    cpprof__buffer_printf(&r->sink.buffer, "}\n");
    return status;
}
