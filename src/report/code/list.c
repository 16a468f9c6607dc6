/* SPDX-License-Identifier: MIT */
/*
 * -list: the source of the functions that match, with the values of each line.
 * Source: internal/report/source.go printSource.
 *
 * The nodes that match are sorted by function, then file, then line; a run of
 * equal functions and files is one routine, and is printed by walking its nodes
 * and the lines of the file side by side.
 */
#include "report/code/source.h"
#include "report/graph/trimmed.h"

#include "base/status.h"

#include <inttypes.h>
#include <stdlib.h>

/* Lines shown before the first and behind the last one with a value. */
#define MARGIN 5

struct list {
    struct cpprof__trimmed t;
    struct cpprof__source source;
};

static const struct cpprof__strings *
strings_of(const struct list *l)
{
    return &l->t.g.p->strings;
}

/* --------------------------------------------------------- what is shown -- */

static int
compare(const void *x, const void *y, void *ctx)
{
    const struct list *l = ctx;
    const struct cpprof__report_row *rows[2] = {x, y};
    const struct cpprof__node *a = &l->t.g.nodes.at[rows[0]->node];
    const struct cpprof__node *b = &l->t.g.nodes.at[rows[1]->node];
    int order = cpprof__strings_compare(strings_of(l), a->name, b->name);

    if (!order)
        order = cpprof__strings_compare(strings_of(l), a->file, b->file);
    return order ? order : (a->line > b->line) - (a->line < b->line);
}

/* Keep the rows whose functions match, in order. */
static void
choose(struct list *l, struct cpprof__regexp *matching)
{
    struct cpprof__trimmed *t = &l->t;
    size_t n = 0, i;

    for (i = 0; i < t->rows.n; i++)
        if (cpprof__regexp_matches_string(matching, strings_of(l),
                                          cpprof__report_row_node(t, i)->name))
            t->rows.at[n++] = t->rows.at[i];
    t->rows.n = n;
    if (n)
        qsort_r(t->rows.at, n, sizeof *t->rows.at, compare, l);
}

/* --------------------------------------------------------------- routine -- */

/* Rows of one function in one file: first up to end. */
struct routine {
    size_t first, end;
    int64_t flat, cum;
    int64_t first_line, last_line; /* what is shown, if the file has it */
};

/* The number of rows from `first` on that have its function and, if same_file,
 * its file. */
static size_t
run_length(const struct list *l, size_t first, bool same_file)
{
    const struct cpprof__node *a = cpprof__report_row_node(&l->t, first), *b;
    size_t i;

    for (i = first + 1; i < l->t.rows.n; i++) {
        b = cpprof__report_row_node(&l->t, i);
        if (b->name != a->name || (same_file && b->file != a->file))
            break;
    }
    return i - first;
}

static void
measure(const struct list *l, struct routine *r)
{
    size_t i;

    r->first_line = INT64_MAX;
    r->last_line = INT64_MIN;
    for (i = r->first; i < r->end; i++) {
        const struct cpprof__node *n = cpprof__report_row_node(&l->t, i);
        int64_t begin =
            n->start_line ? n->start_line : cpprof__add(n->line, -MARGIN);
        int64_t end = cpprof__add(n->line, MARGIN);

        r->flat = cpprof__add(r->flat, n->flat);
        r->cum = cpprof__add(r->cum, n->cum);
        r->first_line = begin < r->first_line ? begin : r->first_line;
        r->last_line = end > r->last_line ? end : r->last_line;
    }
    if (r->first_line < 1)
        r->first_line = 1;
}

/* The lines of a routine; nodes are sorted by line, as these are. */
static void
print_lines(struct list *l, const struct routine *r, const char *path,
            size_t n_path)
{
    struct cpprof__buffer *out = &l->t.r->out;
    char flat_text[CPPROF__LABEL_TEXT], cum_text[CPPROF__LABEL_TEXT];
    size_t at = r->first;
    int64_t line;

    for (line = r->first_line; line <= r->last_line; line++) {
        int64_t flat = 0, cum = 0;
        size_t n;
        const char *text =
            cpprof__source_line(&l->source, path, n_path, line, &n);

        if (!text)
            return;
        for (; at < r->end && cpprof__report_row_node(&l->t, at)->line <= line;
             at++) {
            const struct cpprof__node *node =
                cpprof__report_row_node(&l->t, at);

            if (node->line < line)
                continue;
            flat = cpprof__add(flat, node->flat);
            cum = cpprof__add(cum, node->cum);
        }
        cpprof__value_or_dot(l->t.r, flat, flat_text);
        cpprof__value_or_dot(l->t.r, cum, cum_text);
        cpprof__buffer_printf(out, "%10s %10s %6" PRId64 ":", flat_text,
                              cum_text, line);
        cpprof__buffer_append(out, text, n);
        cpprof__buffer_append(out, "\n", 1);
    }
}

static void
print_routine(struct list *l, size_t first, size_t n)
{
    struct routine r = {.first = first, .end = first + n};
    const struct cpprof__node *node = cpprof__report_row_node(&l->t, first);
    const char *path = cpprof__strings_text(strings_of(l), node->file), *error;
    size_t n_path = cpprof__strings_n(strings_of(l), node->file);
    struct cpprof__report *report = l->t.r;

    measure(l, &r);
    cpprof__buffer_printf(&report->out, "ROUTINE ======================== ");
    cpprof__append_string(l->t.g.p, node->name, &l->t.r->out);
    cpprof__buffer_printf(&report->out, " in ");
    cpprof__append_string(l->t.g.p, node->file, &l->t.r->out);
    cpprof__buffer_printf(&report->out, "\n");
    cpprof__print_sums(report, r.flat, r.cum);
    cpprof__buffer_printf(&report->out, " of Total\n");
    error = cpprof__source_error(&l->source, path, n_path);
    if (error)
        cpprof__buffer_printf(&report->out, " Error: %s\n", error);
    else
        print_lines(l, &r, path, n_path);
}

/* All files of the function that begins at a row; nodes without a file come
 * first. Returns how many rows it has. */
static size_t
print_function(struct list *l, size_t first)
{
    size_t n = run_length(l, first, false), i = first;

    if (!cpprof__report_row_node(&l->t, i)->file)
        i += run_length(l, i, true);
    if (i == first + n) {
        cpprof__buffer_printf(&l->t.r->out, "No source information for ");
        cpprof__append_string(l->t.g.p,
                              cpprof__report_row_node(&l->t, first)->name,
                              &l->t.r->out);
        cpprof__buffer_append(&l->t.r->out, "\n", 1);
    }
    while (i < first + n) {
        size_t k = run_length(l, i, true);

        print_routine(l, i, k);
        i += k;
    }
    return n;
}

/* ---------------------------------------------------------------- format -- */

static enum cpprof_status
print(struct list *l)
{
    struct cpprof__report *r = l->t.r;
    enum cpprof_status status = cpprof__source_begin(
        &l->source, r->options->source_path, r->options->trim_path, r->error);
    char total[CPPROF__LABEL_TEXT];
    size_t i;

    if (status != CPPROF_OK)
        return status;
    cpprof__format_value(r, r->total, total);
    cpprof__buffer_printf(&r->out, "Total: %s\n", total);
    for (i = 0; i < l->t.rows.n;)
        i += print_function(l, i);
    return l->source.failed ? cpprof__fail_nomem(r->error) : CPPROF_OK;
}

enum cpprof_status
cpprof__list(struct cpprof__report *r)
{
    struct list l = {0};
    struct cpprof__regexp *matching = NULL;
    enum cpprof_status status = cpprof__symbol_regexp(r, &matching);

    r->options->granularity = PPROF_REPORT_LINES;
    r->options->flags |= PPROF_REPORT_NO_TRIM;
    if (status == CPPROF_OK)
        status = cpprof__trimmed_begin(&l.t, r, CPPROF__GRAPH_OBJECTS);
    if (status == CPPROF_OK) {
        choose(&l, matching);
        status = cpprof__regexp_status(matching, r->error);
    }
    cpprof__regexp_free(matching);
    if (status == CPPROF_OK && !l.t.rows.n)
        status = cpprof__fail_no_match(r);
    if (status == CPPROF_OK)
        status = print(&l);
    cpprof__source_free(&l.source);
    cpprof__trimmed_free(&l.t);
    return status;
}
