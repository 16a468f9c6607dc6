/* SPDX-License-Identifier: MIT */
/*
 * -tree and -peek: a block for each node, with its callers above and its
 * callees below it. Source: internal/report/report.go printTree.
 */
#include "own/memory.h"
#include "report/graph/calls.h"

#include "base/status.h"

#include <stdlib.h>

#define RULE                                                                   \
    "----------------------------------------------------------+-------------" \
    "\n"
/* The blanks and tabs at its end are the reference's. */
#define LEGEND                                                                 \
    "      flat  flat%   sum%        cum   cum%   calls calls% + context "     \
    "\t \t \n"

/* One line for an edge, with the node at its other end. */
static void
print_edge(const struct cpprof__calls *c, const struct cpprof__edge *e,
           uint32_t other, int64_t cum)
{
    struct cpprof__buffer *out = &c->t->r->out;
    char value[CPPROF__LABEL_TEXT], percent[CPPROF__PERCENT_TEXT];

    /* Not the mean, even if there is one, as in the reference. */
    cpprof__format_value(c->t->r, e->weight, value);
    cpprof__percentage(percent, e->weight, cum);
    cpprof__buffer_printf(out, "%50s %s |   ", value, percent);
    cpprof__calls_name(c, other, out);
    cpprof__buffer_printf(out, "%s\n", e->is_inline ? " (inline)" : "");
}

static void
print_block(const struct cpprof__calls *c, uint32_t node, int64_t flat_sum)
{
    const struct cpprof__node *n = &c->t->g.nodes.at[node];
    int64_t cum = cpprof__mean(n->cum, n->cum_div);
    size_t i;

    cpprof__buffer_printf(&c->t->r->out, "%s", RULE);
    for (i = c->in.first[node]; i < c->in.first[node + 1]; i++) {
        const struct cpprof__edge *e = cpprof__edge(c, c->in.list[i]);

        print_edge(c, e, e->from, cum);
    }
    cpprof__print_row_values(c->t->r, n, flat_sum);
    cpprof__buffer_printf(&c->t->r->out, "                | ");
    cpprof__calls_name(c, node, &c->t->r->out);
    cpprof__buffer_printf(&c->t->r->out, "\n");
    for (i = c->out.first[node]; i < c->out.first[node + 1]; i++) {
        const struct cpprof__edge *e = cpprof__edge(c, c->out.list[i]);

        print_edge(c, e, e->to, cum);
    }
}

/* Print the blocks of the rows, or of those that are wanted. */
static void
print(const struct cpprof__calls *c, const uint8_t *wanted)
{
    const struct cpprof__trimmed *t = c->t;
    int64_t flat_sum = 0;
    size_t i;

    cpprof__heading(t->r, &t->shown);
    cpprof__buffer_printf(&t->r->out, "%s", RULE LEGEND);
    for (i = 0; i < t->rows.n; i++) {
        uint32_t node = t->rows.at[i].node;
        const struct cpprof__node *n = &t->g.nodes.at[node];

        if (wanted && !wanted[node])
            continue;
        flat_sum = cpprof__add(flat_sum, cpprof__mean(n->flat, n->flat_div));
        print_block(c, node, flat_sum);
    }
    if (t->rows.n)
        cpprof__buffer_printf(&t->r->out, "%s", RULE);
}

/* Of the edges, which take most of the time, only those of wanted rows. */
static enum cpprof_status
print_tree(struct cpprof__trimmed *t, const uint8_t *wanted)
{
    struct cpprof__calls c = {0};
    enum cpprof_status status;

    t->g.only_ends = wanted;
    status = cpprof__trimmed_edges(t);
    if (status == CPPROF_OK)
        status = cpprof__calls_make(&c, t, NULL);
    if (status == CPPROF_OK) {
        cpprof__select_unit(t, false);
        print(&c, wanted);
    }
    cpprof__calls_free(&c);
    return status;
}

enum cpprof_status
cpprof__tree(struct cpprof__report *r)
{
    struct cpprof__trimmed t = {0};
    enum cpprof_status status;

    if (r->options->nodecount < 0)
        r->options->nodecount = 80;
    status = cpprof__trimmed_make(&t, r, 0);
    if (status == CPPROF_OK)
        status = print_tree(&t, NULL);
    cpprof__trimmed_free(&t);
    return status;
}

enum cpprof_status
cpprof__symbol_regexp(const struct cpprof__report *r,
                      struct cpprof__regexp **matching)
{
    const char *symbol = r->options->symbol;

    return cpprof__regexp_make(symbol ? symbol : "", "argument", matching,
                               r->error);
}

enum cpprof_status
cpprof__fail_no_match(const struct cpprof__report *r)
{
    const char *symbol = r->options->symbol;

    return cpprof__fail(r->error, CPPROF_BAD_DATA, 0,
                        "no matches found for regexp: %s",
                        symbol ? symbol : "");
}

/* Mark the nodes of the rows that match; CPPROF_BAD_DATA: none does. */
static enum cpprof_status
find_matching(const struct cpprof__trimmed *t, uint8_t *matches)
{
    struct cpprof__regexp *expression = NULL;
    enum cpprof_status status = cpprof__symbol_regexp(t->r, &expression);
    size_t n = 0, i;

    if (status != CPPROF_OK)
        return status;
    for (i = 0; i < t->rows.n; i++) {
        const struct cpprof__report_row *row = &t->rows.at[i];

        matches[row->node] = cpprof__regexp_matches(
            expression, (const char *)t->names.data + row->name, row->n_name);
        n += matches[row->node];
    }
    status = cpprof__regexp_status(expression, t->r->error);
    cpprof__regexp_free(expression);
    return status == CPPROF_OK && !n ? cpprof__fail_no_match(t->r) : status;
}

enum cpprof_status
cpprof__peek(struct cpprof__report *r)
{
    struct cpprof__trimmed t = {0};
    uint8_t *matches = NULL;
    enum cpprof_status status;

    r->options->flags |= PPROF_REPORT_NO_TRIM;
    status = cpprof__trimmed_make(&t, r, 0);
    if (status == CPPROF_OK) {
        matches = cpprof__calloc(t.g.nodes.n + 1, 1);
        status =
            matches ? find_matching(&t, matches) : cpprof__fail_nomem(r->error);
    }
    if (status == CPPROF_OK)
        status = print_tree(&t, matches);
    cpprof__free(matches);
    cpprof__trimmed_free(&t);
    return status;
}
