/* SPDX-License-Identifier: MIT */
/*
 * -dot: the graph as Graphviz reads it: a legend, a node for each function with
 * the tags of its samples, an edge for each call, with sizes and colours by
 * value. Source: internal/graph/dotgraph.go,
 * internal/report/report.go printDOT.
 */
#include "own/memory.h"
#include "report/dot/dot_text.h"
#include "report/dot/visual.h"

#include "base/status.h"
#include "profile/model/path.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct drawing {
    struct cpprof__report *r;
    struct cpprof__visual v;
    size_t *id;       /* of nodes: row + 1; 0: not drawn */
    double most_flat; /* of any node */
};

/* ------------------------------------------------------------ legend ---- */

/* The program is the title; `none` where it is not known. */
static void
append_title(struct cpprof__report *r, const char *none)
{
    const struct pprof_profile *p = r->p;
    uint32_t file = p->mappings.n ? p->mappings.at[0].file : 0;
    size_t n = strlen(none);
    const char *base = none;

    if (file)
        base = cpprof__path_base(cpprof__strings_text(&p->strings, file),
                                 cpprof__strings_n(&p->strings, file), &n);
    cpprof__dot_escape(base,
                       cpprof__utf8_prefix(base, n, cpprof__dot_most(r, false)),
                       &r->out);
}

static void
append_escaped(struct drawing *d, const struct cpprof__buffer *text,
               size_t most)
{
    size_t n = cpprof__utf8_prefix((const char *)text->data, text->n, most);

    cpprof__dot_escape(text->data, n, &d->r->out);
    if (n < text->n)
        cpprof__buffer_printf(&d->r->out, "...");
}

/* The heading of other reports, in a box; its first line names the box. */
static void
print_legend(struct drawing *d)
{
    struct cpprof__buffer *out = &d->r->out, whole = *out;
    struct cpprof__buffer text = {0};
    const uint8_t *end;

    /* The heading is printed for itself, and whole. */
    d->r->options->flags &= ~PPROF_REPORT_COMPACT_LABELS;
    *out = text;
    cpprof__heading(d->r, &d->v.t.shown);
    cpprof__buffer_printf(out, "\nSee https://git.io/JfYMW for how to read the "
                               "graph\n");
    text = *out;
    *out = whole;
    out->failed |= text.failed;
    end = text.n ? memchr(text.data, '\n', text.n) : NULL;
    cpprof__buffer_printf(out, "subgraph cluster_L { \"");
    if (end)
        cpprof__dot_escape(text.data,
                           cpprof__utf8_prefix((const char *)text.data,
                                               (size_t)(end - text.data),
                                               cpprof__dot_most(d->r, false)),
                           out);
    cpprof__buffer_printf(out, "\" [shape=box fontsize=16 label=\"");
    append_escaped(d, &text, cpprof__dot_most(d->r, true));
    cpprof__buffer_printf(out, "\"");
    if (d->r->p->mappings.n && d->r->p->mappings.at[0].file) {
        cpprof__buffer_printf(out, " tooltip=\"");
        append_title(d->r, "");
        cpprof__buffer_printf(out, "\"");
    }
    cpprof__buffer_printf(out, "] }\n");
    cpprof__buffer_free(&text);
}

/* ------------------------------------------------------------- nodes ---- */

/* A short name in lines: a line for each namespace and class. */
static void
append_lines(const char *name, size_t n, struct cpprof__buffer *out)
{
    struct cpprof__buffer brief = {0}, text = {0};
    const char *p, *end;

    cpprof__short_name(name, n, &brief);
    cpprof__dot_escape(brief.data, brief.n, &text);
    p = (const char *)text.data;
    end = p + text.n;
    while (text.n && p < end) {
        if (end - p >= 2 && memcmp(p, "::", 2) == 0) {
            cpprof__buffer_append(out, "\\n", 2);
            p += 2;
        } else if (end - p >= 5 && memcmp(p, "[...]", 5) == 0) {
            /* Go's type parameters stay on the line. */
            cpprof__buffer_append(out, "[\xe2\x80\xa6]", 5);
            p += 5;
        } else if (*p == '.') {
            cpprof__buffer_append(out, "\\n", 2);
            p++;
        } else {
            cpprof__buffer_append(out, p++, 1);
        }
    }
    out->failed |= brief.failed || text.failed;
    cpprof__buffer_free(&brief);
    cpprof__buffer_free(&text);
}

static void
append_file(const char *name, size_t n, struct cpprof__buffer *out)
{
    cpprof__dot_escape(name, n, out);
}

/* "12.34%", without the blanks of a table. */
static void
append_percent(struct drawing *d, int64_t value)
{
    char percent[CPPROF__PERCENT_TEXT];

    cpprof__percentage(percent, value, d->r->total);
    cpprof__buffer_printf(&d->r->out, "(%s)", percent + strspn(percent, " "));
}

/* The values in a node; *text is how the larger one is printed. */
static void
print_values(struct drawing *d, int64_t flat, int64_t cum,
             char text[CPPROF__DOT_VALUE])
{
    struct cpprof__buffer *out = &d->r->out;

    cpprof__dot_value(d->r, flat, text);
    if (flat) {
        cpprof__buffer_printf(out, "%s ", text);
        append_percent(d, flat);
    } else {
        cpprof__buffer_printf(out, "0");
    }
    if (cum == flat)
        return;
    cpprof__dot_value(d->r, cum, text);
    cpprof__buffer_printf(out, "%sof %s ", flat ? "\\n" : " ", text);
    append_percent(d, cum);
}

static double
part_of_total(const struct drawing *d, int64_t value)
{
    return (double)value / (double)cpprof__abs(d->r->total);
}

/* Append the printed name of a node for inside of quotes. */
static void
append_name(struct drawing *d, uint32_t node)
{
    struct cpprof__buffer name = {0};

    cpprof__calls_name(&d->v.calls, node, &name);
    append_escaped(d, &name, cpprof__dot_most(d->r, false));
    d->r->out.failed |= name.failed;
    cpprof__buffer_free(&name);
}

static void
print_node(struct drawing *d, uint32_t at)
{
    struct cpprof__name_style in_lines = {"\\n", append_lines, append_file,
                                          cpprof__dot_most(d->r, false)};
    const struct cpprof__node *n = &d->v.t.g.nodes.at[at];
    int64_t flat = cpprof__mean(n->flat, n->flat_div);
    int64_t cum = cpprof__mean(n->cum, n->cum_div);
    int font_size = 8;
    char value[CPPROF__DOT_VALUE];
    char strong[CPPROF__COLOR_TEXT], pale[CPPROF__COLOR_TEXT];
    struct cpprof__buffer *out = &d->r->out;

    cpprof__buffer_printf(out, "N%zu [label=\"", d->id[at]);
    cpprof__node_name_in(&d->v.t.g, n, &in_lines, out);
    cpprof__buffer_printf(out, "\\n");
    print_values(d, flat, cum, value);
    /* From 8 to 24 points; the area grows with the flat value. */
    if (d->most_flat && flat && fabs((double)flat) <= d->most_flat)
        font_size += (int)ceil(16 * sqrt(fabs((double)flat) / d->most_flat));
    cpprof__buffer_printf(out,
                          "\" id=\"node%zu\" fontsize=%d shape=box tooltip=\"",
                          d->id[at], font_size);
    append_name(d, at);
    cpprof__dot_color(strong, part_of_total(d, cum), false);
    cpprof__dot_color(pale, part_of_total(d, cum), true);
    cpprof__buffer_printf(out, " (%s)\" color=\"%s\" fillcolor=\"%s\"]\n",
                          value, strong, pale);
}

/* ------------------------------------------------------------- edges ---- */

/* |value * parts / total|, at most `parts`. */
static int
share(const struct drawing *d, int64_t value, int64_t parts)
{
    int64_t product = (int64_t)((uint64_t)value * (uint64_t)parts);
    int64_t part = cpprof__abs(cpprof__mean(product, d->r->total));

    return (int)(part < parts ? part : parts);
}

static void
print_weight(struct drawing *d, int64_t value)
{
    char color[CPPROF__COLOR_TEXT];
    struct cpprof__buffer *out = &d->r->out;

    if (!d->r->total)
        return;
    if (share(d, value, 100) > 0)
        cpprof__buffer_printf(out, " weight=%d", 1 + share(d, value, 100));
    if (share(d, value, 5) > 0)
        cpprof__buffer_printf(out, " penwidth=%d", 1 + share(d, value, 5));
    cpprof__dot_color(color, part_of_total(d, value), false);
    cpprof__buffer_printf(out, " color=\"%s\"", color);
}

static void
print_tooltip(struct drawing *d, const struct cpprof__edge *e, const char *key,
              const char *value)
{
    struct cpprof__buffer *out = &d->r->out;

    cpprof__buffer_printf(out, " %s=\"", key);
    append_name(d, e->from);
    cpprof__buffer_printf(out, " %s ", e->is_residual ? "..." : "->");
    append_name(d, e->to);
    cpprof__buffer_printf(out, " (%s)\"", value);
}

static void
print_edge(struct drawing *d, const struct cpprof__edge *e, bool has_tags)
{
    int64_t weight = cpprof__mean(e->weight, e->divisor);
    char value[CPPROF__DOT_VALUE];
    struct cpprof__buffer *out = &d->r->out;

    cpprof__dot_value(d->r, weight, value);
    cpprof__buffer_printf(out, "N%zu -> N%zu [label=\" %s%s\"", d->id[e->from],
                          d->id[e->to], value,
                          e->is_inline ? "\\n (inline)" : "");
    print_weight(d, weight);
    print_tooltip(d, e, "tooltip", value);
    print_tooltip(d, e, "labeltooltip", value);
    cpprof__buffer_printf(out, "%s%s]\n",
                          e->is_residual ? " style=\"dotted\"" : "",
                          has_tags ? " minlen=2" : "");
}

/* ------------------------------------------------------------- graph ---- */

static void
number_nodes(struct drawing *d)
{
    size_t i;

    for (i = 0; i < d->v.t.rows.n; i++) {
        const struct cpprof__node *n = cpprof__report_row_node(&d->v.t, i);
        double flat = (double)cpprof__abs(cpprof__mean(n->flat, n->flat_div));

        d->id[d->v.t.rows.at[i].node] = i + 1;
        if (flat > d->most_flat || !i)
            d->most_flat = flat;
    }
}

static void
print_graph(struct drawing *d, uint8_t *has_tags, bool *failed)
{
    const struct cpprof__graph *g = &d->v.t.g;
    const struct cpprof__lists *out = &d->v.calls.out;
    size_t i, k;

    cpprof__buffer_printf(&d->r->out, "digraph \"");
    append_title(d->r, "unnamed");
    cpprof__buffer_printf(&d->r->out,
                          "\" {\nnode [style=filled fillcolor=\"#f8f8f8\"]\n");
    print_legend(d);
    for (i = 0; i < d->v.t.rows.n; i++) {
        uint32_t node = d->v.t.rows.at[i].node;
        bool has_calls = false;

        for (k = out->first[node]; k < out->first[node + 1]; k++)
            has_calls |= !d->v.redundant[out->list[k]];
        print_node(d, node);
        has_tags[node] =
            cpprof__dot_tags(&d->v, node, d->id[node], has_calls, failed);
    }
    for (i = 0; i < g->edges.n; i++) {
        const struct cpprof__edge *e = &g->edges.at[i];

        if (d->id[e->from] && !d->v.redundant[i])
            print_edge(d, e, has_tags[e->from]);
    }
    cpprof__buffer_printf(&d->r->out, "}\n");
}

/* For a picture: as many edges as can be laid out in a moment. */
static void
limit_edges(struct drawing *d)
{
    const struct pprof_report_options *o = d->r->options;
    char line[160];
    size_t n, n_left;

    if (!(o->flags & PPROF_REPORT_PICTURE) || o->flags & PPROF_REPORT_NO_TRIM)
        return;
    n = cpprof__visual_limit_edges(&d->v, &n_left);
    if (!n || !o->warn)
        return;
    snprintf(line, sizeof line,
             "Left out %zu of %zu edges, the lightest ones, to draw the graph "
             "in a moment; -trim=false draws all",
             n, n + n_left);
    o->warn(o->ctx, line);
}

enum cpprof_status
cpprof__dot(struct cpprof__report *r)
{
    struct drawing d = {.r = r};
    enum cpprof_status status = cpprof__visual_make(&d.v, r);
    uint8_t *has_tags = cpprof__calloc(d.v.t.g.nodes.n + 1, 1);
    bool failed = false;

    d.id = cpprof__calloc(d.v.t.g.nodes.n + 1, sizeof *d.id);
    if (status == CPPROF_OK && (!d.id || !has_tags))
        status = cpprof__fail_nomem(r->error);
    if (status == CPPROF_OK) {
        cpprof__select_unit(&d.v.t, false);
        limit_edges(&d);
        number_nodes(&d);
        print_graph(&d, has_tags, &failed);
    }
    if (failed)
        status = cpprof__fail_nomem(r->error);
    cpprof__visual_free(&d.v);
    cpprof__free(d.id);
    cpprof__free(has_tags);
    return status;
}
