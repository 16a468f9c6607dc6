/* SPDX-License-Identifier: MIT */
/*
 * -callgrind: the graph as KCachegrind reads it. Files and functions are
 * written out once and then told by a number. Source:
 * internal/report/report.go printCallgrind, and
 * https://valgrind.org/docs/manual/cl-format.html
 */
#include "report/calls.h"

#include "base/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Texts that have a number, counted from 1 in the order of their use. */
struct numbered {
    struct cpprof__strings texts;
};

struct writer {
    struct cpprof__report *r;
    struct cpprof__trimmed t;
    struct cpprof__calls calls;
    struct numbered objects, files, names;
    /* By node: which one of the functions of its name and file it belongs to,
     * and how many there are. */
    uint32_t *which, *n_same;
    const struct cpprof__node *previous;
    bool failed;
};

static const char *
text_of(const struct writer *w, uint32_t string)
{
    return cpprof__strings_text(&w->r->p->strings, string);
}

/* "KEY=(3) text" for a text that is new, else "KEY=(3)". */
static void
print_text(struct writer *w, const char *key, struct numbered *in,
           const char *text)
{
    size_t n = in->texts.table.n;
    uint32_t number = 0;

    if (*text) {
        number = cpprof__strings_add_text(&in->texts, text);
        w->failed |= number == CPPROF__NO_STRING;
    }
    if (!*text)
        cpprof__buffer_printf(&w->r->out, "%s=\n", key);
    else if (number == n)
        cpprof__buffer_printf(&w->r->out, "%s=(%u) %s\n", key, number, text);
    else
        cpprof__buffer_printf(&w->r->out, "%s=(%u)\n", key, number);
}

/* ------------------------------------------------- names that repeat ---- */

static int
compare_names(const struct cpprof__node *a, const struct cpprof__node *b)
{
    if (a->name != b->name)
        return a->name < b->name ? -1 : 1;
    return (a->file > b->file) - (a->file < b->file);
}

static bool
same_function(const struct cpprof__node *a, const struct cpprof__node *b)
{
    return a->start_line == b->start_line && a->object == b->object;
}

/* By name and file, then in the order of the rows. */
static int
compare_rows(const void *x, const void *y, void *ctx)
{
    const struct cpprof__trimmed *t = ctx;
    size_t a = *(const size_t *)x, b = *(const size_t *)y;
    int order = compare_names(cpprof__row_node(t, a), cpprof__row_node(t, b));

    return order ? order : (a > b) - (a < b);
}

/* Number the functions of rows[first] up to rows[last], which have the same
 * name and file. */
static void
number_functions(struct writer *w, const size_t *rows, size_t n)
{
    uint32_t n_functions = 0;
    size_t i, j;

    for (i = 0; i < n; i++) {
        const struct cpprof__node *node = cpprof__row_node(&w->t, rows[i]);
        uint32_t at = w->t.rows.at[rows[i]].node;

        for (j = 0; j < i; j++)
            if (same_function(node, cpprof__row_node(&w->t, rows[j])))
                break;
        w->which[at] =
            j < i ? w->which[w->t.rows.at[rows[j]].node] : n_functions++;
    }
    for (i = 0; i < n; i++)
        w->n_same[w->t.rows.at[rows[i]].node] = n_functions;
}

static bool
find_same_names(struct writer *w)
{
    size_t n = w->t.rows.n, first, last, i;
    size_t *rows = malloc((n + 1) * sizeof *rows);

    w->which = calloc(w->t.g.nodes.n + 1, sizeof *w->which);
    w->n_same = calloc(w->t.g.nodes.n + 1, sizeof *w->n_same);
    if (!rows || !w->which || !w->n_same) {
        free(rows);
        return false;
    }
    for (i = 0; i < n; i++)
        rows[i] = i;
    if (n)
        qsort_r(rows, n, sizeof *rows, compare_rows, &w->t);
    for (first = 0; first < n; first = last) {
        for (last = first + 1; last < n; last++)
            if (compare_names(cpprof__row_node(&w->t, rows[first]),
                              cpprof__row_node(&w->t, rows[last])) != 0)
                break;
        number_functions(w, rows + first, last - first);
    }
    free(rows);
    return true;
}

/* The name of a function, told from others of its name. */
static void
print_callee(struct writer *w, uint32_t at)
{
    const char *name = text_of(w, w->t.g.nodes.at[at].name);
    struct cpprof__buffer text = {0};

    if (w->n_same[at] <= 1) {
        print_text(w, "cfn", &w->names, name);
        return;
    }
    cpprof__buffer_printf(&text, "%s [%u/%u]", name, w->which[at] + 1,
                          w->n_same[at]);
    cpprof__buffer_append(&text, "", 1);
    w->failed |= text.failed;
    if (!text.failed)
        print_text(w, "cfn", &w->names, (const char *)text.data);
    cpprof__buffer_free(&text);
}

/* ------------------------------------------------------------- lines ---- */

/* An address, or how far it is from the previous one where that is shorter. */
static void
print_address(struct writer *w, uint64_t address)
{
    char absolute[32], relative[32];

    snprintf(absolute, sizeof absolute, "0x%" PRIx64, address);
    if (w->previous)
        snprintf(relative, sizeof relative, "%+" PRId64,
                 (int64_t)(address - w->previous->address));
    if (w->previous && w->previous->address == address)
        cpprof__buffer_printf(&w->r->out, "*");
    else if (w->previous && strlen(relative) < strlen(absolute))
        cpprof__buffer_printf(&w->r->out, "%s", relative);
    else
        cpprof__buffer_printf(&w->r->out, "%s", absolute);
}

static int64_t
scaled(const struct writer *w, int64_t value)
{
    double v;

    cpprof__scale(value, w->r->sample_unit, w->r->output_unit, &v);
    return cpprof__to_int64(v);
}

static void
print_call(struct writer *w, const struct cpprof__edge *e)
{
    const struct cpprof__node *callee = &w->t.g.nodes.at[e->to];

    print_text(w, "cfl", &w->files, text_of(w, callee->file));
    print_callee(w, e->to);
    /* How often is not known. */
    cpprof__buffer_printf(&w->r->out, "calls=0 ");
    print_address(w, callee->address);
    cpprof__buffer_printf(&w->r->out, " %" PRId64 "\n* * %" PRId64 "\n",
                          callee->line, scaled(w, e->weight));
}

static void
print_node(struct writer *w, uint32_t at)
{
    const struct cpprof__node *n = &w->t.g.nodes.at[at], *p = w->previous;
    const struct cpprof__edge_lists *out = &w->calls.out;
    size_t i;

    if (!p || n->object != p->object || n->file != p->file ||
        n->name != p->name) {
        cpprof__buffer_printf(&w->r->out, "\n");
        print_text(w, "ob", &w->objects, text_of(w, n->object));
        print_text(w, "fl", &w->files, text_of(w, n->file));
        print_text(w, "fn", &w->names, text_of(w, n->name));
    }
    print_address(w, n->address);
    cpprof__buffer_printf(&w->r->out, " %" PRId64 " %" PRId64 "\n", n->line,
                          scaled(w, cpprof__mean(n->flat, n->flat_div)));
    for (i = out->first[at]; i < out->first[at + 1]; i++)
        print_call(w, cpprof__edge(&w->calls, out->list[i]));
    w->previous = n;
}

static void
print(struct writer *w)
{
    const struct cpprof__report *r = w->r;
    size_t i;

    cpprof__buffer_printf(
        &w->r->out, "positions: instr line\nevents: %s%s(%s)\n",
        r->divisor == CPPROF__NO_DIVISOR ? "" : "mean_",
        text_of(w, r->p->sample_types.at[r->value].type), r->output_unit);
    for (i = 0; i < w->t.rows.n; i++)
        print_node(w, w->t.rows.at[i].node);
}

static void
writer_free(struct writer *w)
{
    cpprof__calls_free(&w->calls);
    cpprof__trimmed_free(&w->t);
    cpprof__strings_free(&w->objects.texts);
    cpprof__strings_free(&w->files.texts);
    cpprof__strings_free(&w->names.texts);
    free(w->which);
    free(w->n_same);
}

enum cpprof_status
cpprof__callgrind(struct cpprof__report *r)
{
    static const struct cpprof__trim everything = {
        .no_trim = true, .objects = true, .addresses = true};
    struct writer w = {.r = r};
    enum cpprof_status status = cpprof__trimmed_make(&w.t, r, &everything);

    if (status == CPPROF_OK)
        status = cpprof__trimmed_edges(&w.t);
    if (status == CPPROF_OK)
        status = cpprof__calls_make(&w.calls, &w.t, NULL);
    if (status == CPPROF_OK &&
        (!cpprof__strings_begin(&w.objects.texts) ||
         !cpprof__strings_begin(&w.files.texts) ||
         !cpprof__strings_begin(&w.names.texts) || !find_same_names(&w)))
        status = cpprof__fail_nomem(r->error);
    if (status == CPPROF_OK) {
        cpprof__select_whole_unit(&w.t);
        print(&w);
    }
    if (w.failed)
        status = cpprof__fail_nomem(r->error);
    writer_free(&w);
    return status;
}
