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

/* What a function is made of; its name and file alone, or all of it. */
struct same {
    const struct writer *w;
    const struct cpprof__node *node;
    bool whole;
};

static bool
is_same(void *ctx, uint32_t value)
{
    const struct same *s = ctx;
    const struct cpprof__node *n = &s->w->t.g.nodes.at[value];

    return n->name == s->node->name && n->file == s->node->file &&
           (!s->whole ||
            (n->start_line == s->node->start_line &&
             n->object == s->node->object && n->context == s->node->context));
}

/* The first node that is the same; it is this one where there was none. */
static uint32_t
first_same(struct writer *w, struct cpprof__index *index, uint32_t at,
           bool whole)
{
    const struct cpprof__node *n = &w->t.g.nodes.at[at];
    struct same same = {w, n, whole};
    uint64_t hash = cpprof__hash_add(n->name, n->file);
    uint32_t found;

    if (whole)
        hash = cpprof__hash_add(
            cpprof__hash_add(cpprof__hash_add(hash, n->object), n->context),
            (uint64_t)n->start_line);
    hash = cpprof__hash_u64(hash);
    found = cpprof__index_find(index, hash, is_same, &same);
    if (found != CPPROF__INDEX_NONE)
        return found;
    w->failed |= !cpprof__index_add(index, hash, at);
    return at;
}

/* Number the functions of each name and file in the order of the rows. While
 * that goes on, n_same counts at the first node of a name. */
static void
number_functions(struct writer *w, struct cpprof__index *names,
                 struct cpprof__index *functions)
{
    size_t i;

    for (i = 0; i < w->t.rows.n && !w->failed; i++) {
        uint32_t at = w->t.rows.at[i].node;
        uint32_t function = first_same(w, functions, at, true);

        w->which[at] = function == at
                           ? w->n_same[first_same(w, names, at, false)]++
                           : w->which[function];
    }
    for (i = 0; i < w->t.rows.n && !w->failed; i++) {
        uint32_t at = w->t.rows.at[i].node;

        w->n_same[at] = w->n_same[first_same(w, names, at, false)];
    }
}

static bool
find_same_names(struct writer *w)
{
    struct cpprof__index names = {0}, functions = {0};

    w->which = calloc(w->t.g.nodes.n + 1, sizeof *w->which);
    w->n_same = calloc(w->t.g.nodes.n + 1, sizeof *w->n_same);
    w->failed |= !w->which || !w->n_same;
    if (!w->failed)
        number_functions(w, &names, &functions);
    cpprof__index_free(&names);
    cpprof__index_free(&functions);
    return !w->failed;
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
        .no_trim = true, .objects = true, .addresses = true, .call_tree = true};
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
