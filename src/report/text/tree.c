/* SPDX-License-Identifier: MIT */
/*
 * -tree and -peek: a block for each node, with its callers above and its
 * callees below it. Source: internal/report/report.go printTree.
 */
#include "report/graph/calls.h"

#include "base/status.h"

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

/* Print the blocks of the nodes that match, all without a regexp; how many. */
static size_t
print(const struct cpprof__calls *c, struct cpprof__regexp *matching)
{
    const struct cpprof__trimmed *t = c->t;
    int64_t flat_sum = 0;
    size_t n_matched = 0, i;

    cpprof__heading(t->r, &t->shown);
    cpprof__buffer_printf(&t->r->out, "%s", RULE LEGEND);
    for (i = 0; i < t->rows.n; i++) {
        uint32_t node = t->rows.at[i].node;
        const struct cpprof__node *n = &t->g.nodes.at[node];

        if (matching &&
            !cpprof__regexp_matches(matching,
                                    (const char *)c->names.data + c->name[node],
                                    c->n_name[node]))
            continue;
        n_matched++;
        flat_sum = cpprof__add(flat_sum, cpprof__mean(n->flat, n->flat_div));
        print_block(c, node, flat_sum);
    }
    if (t->rows.n)
        cpprof__buffer_printf(&t->r->out, "%s", RULE);
    return n_matched;
}

static enum cpprof_status
print_tree(struct cpprof__report *r, struct cpprof__regexp *matching,
           size_t *n_matched)
{
    struct cpprof__trimmed t = {0};
    struct cpprof__calls c = {0};
    enum cpprof_status status = cpprof__trimmed_make(&t, r, 0);

    if (status == CPPROF_OK)
        status = cpprof__trimmed_edges(&t);
    if (status == CPPROF_OK)
        status = cpprof__calls_make(&c, &t, NULL);
    if (status == CPPROF_OK) {
        cpprof__select_unit(&t, false);
        *n_matched = print(&c, matching);
    }
    cpprof__calls_free(&c);
    cpprof__trimmed_free(&t);
    return status;
}

enum cpprof_status
cpprof__tree(struct cpprof__report *r)
{
    size_t n_matched;

    if (r->options->nodecount < 0)
        r->options->nodecount = 80;
    return print_tree(r, NULL, &n_matched);
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

enum cpprof_status
cpprof__peek(struct cpprof__report *r)
{
    struct cpprof__regexp *matching = NULL;
    size_t n_matched = 0;
    enum cpprof_status status = cpprof__symbol_regexp(r, &matching);

    r->options->flags |= PPROF_REPORT_NO_TRIM;
    if (status == CPPROF_OK)
        status = print_tree(r, matching, &n_matched);
    if (status == CPPROF_OK)
        status = cpprof__regexp_status(matching, r->error);
    cpprof__regexp_free(matching);
    if (status == CPPROF_OK && !n_matched)
        status = cpprof__fail_no_match(r);
    return status;
}
