/* SPDX-License-Identifier: MIT */
/*
 * The text that clang takes as -fprofile-sample-use: of each function its name,
 * the sum of its counts, and how often it was entered; then its lines.
 *
 *     main:184019:0
 *      4: 534
 *      4.2: 534
 *      5: 1075 _Z3fooi:840
 *      6: inline1:2000
 *       1: 2000
 *
 * A line is relative to the declaration of its function. Behind the dot is the
 * block of the line, behind the count who was called. An inlined function
 * stands where it was called, a blank deeper. The blanks are part of the
 * format. Source: llvm/ProfileData/SampleProfReader.h.
 */
#include "cli/pgo/pgo.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A block that ran once for each sample of an instruction has this count, or
 * less where the largest would be more than a number can tell exactly. */
#define SCALE      1000.0
#define MOST_COUNT 9007199254740992.0

/* Nodes, lines and targets by the node that they belong to, and in it by
 * line. */
struct entry {
    const struct cpprof__pgo_position *position;
    enum { LINE, TARGET, CALL } kind;
    double count;
    uint32_t number; /* of the node, if it is one */
};

struct writer {
    const struct cpprof__pgo_counts *counts;
    struct cpprof__buffer *out;
    struct entry *entries;
    size_t n;
    double scale;
    size_t n_unreadable; /* functions that clang could not read the names of */
};

static int
entry_order(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    const struct cpprof__pgo_position *p = a->position, *q = b->position;

    if (p->node != q->node)
        return p->node < q->node ? -1 : 1;
    /* Functions: the hottest first. */
    if (p->node == CPPROF__PGO_NONE && a->count != b->count)
        return a->count > b->count ? -1 : 1;
    if (p->line != q->line)
        return p->line < q->line ? -1 : 1;
    if (p->discriminator != q->discriminator)
        return p->discriminator < q->discriminator ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return (p->name > q->name) - (p->name < q->name);
}

static size_t
first_of(const struct writer *w, uint32_t node)
{
    size_t low = 0, high = w->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (w->entries[middle].position->node < node)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint64_t
scaled(const struct writer *w, double count)
{
    double x = count > 0 ? count * w->scale + 0.5 : 0;

    return (uint64_t)(x < MOST_COUNT ? x : MOST_COUNT);
}

static void
write_position(struct writer *w, const struct cpprof__pgo_position *p,
               int depth)
{
    cpprof__buffer_printf(w->out, "%*s%" PRIu32, depth, "", p->line);
    if (p->discriminator)
        cpprof__buffer_printf(w->out, ".%" PRIu32, p->discriminator);
    cpprof__buffer_printf(w->out, ": ");
}

static const char *
name_of(const struct writer *w, uint32_t name)
{
    return cpprof__strings_text(&w->counts->names, name);
}

/* Can clang read the name? One that begins with "#" is a comment, with "[" a
 * context, with a digit a count; blanks and "@" part what is one name. */
static bool
is_readable(const struct writer *w, uint32_t name)
{
    const char *text = name_of(w, name);
    size_t i;

    for (i = 0; text[i]; i++)
        if ((unsigned char)text[i] <= ' ' || strchr("#@[]", text[i]))
            return false;
    return i && !isdigit((unsigned char)*text);
}

static void
write_body(struct writer *w, uint32_t node, int depth);

static bool
is_same_line(const struct cpprof__pgo_position *a,
             const struct cpprof__pgo_position *b)
{
    return a->line == b->line && a->discriminator == b->discriminator;
}

/* *open is the line that has no end yet, or NULL. */
static void
write_entry(struct writer *w, const struct entry *e, int depth,
            const struct cpprof__pgo_position **open)
{
    if (e->kind == TARGET) {
        if (*open && is_same_line(*open, e->position) && scaled(w, e->count) &&
            is_readable(w, e->position->name))
            cpprof__buffer_printf(w->out, " %s:%" PRIu64,
                                  name_of(w, e->position->name),
                                  scaled(w, e->count));
        return;
    }
    if (e->kind == CALL && !is_readable(w, e->position->name)) {
        w->n_unreadable++;
        return;
    }
    if (*open)
        cpprof__buffer_append(w->out, "\n", 1);
    *open = e->kind == LINE ? e->position : NULL;
    write_position(w, e->position, depth);
    if (e->kind == LINE) {
        cpprof__buffer_printf(w->out, "%" PRIu64, scaled(w, e->count));
        return;
    }
    cpprof__buffer_printf(w->out, "%s:%" PRIu64 "\n",
                          name_of(w, e->position->name), scaled(w, e->count));
    write_body(w, e->number, depth + 1);
}

static void
write_body(struct writer *w, uint32_t node, int depth)
{
    size_t i = first_of(w, node);
    const struct cpprof__pgo_position *open = NULL;

    for (; i < w->n && w->entries[i].position->node == node; i++)
        write_entry(w, &w->entries[i], depth, &open);
    if (open)
        cpprof__buffer_append(w->out, "\n", 1);
}

static void
collect(struct writer *w, const struct cpprof__pgo_tree *tree)
{
    const struct cpprof__pgo_node *node = (void *)tree->nodes.entries.data;
    const struct cpprof__table *tables[] = {&tree->lines, &tree->targets};
    size_t n = tree->nodes.entries.n / sizeof *node, i, k;

    for (i = 0; i < n; i++)
        w->entries[w->n++] =
            (struct entry){&node[i].position, CALL, node[i].total, (uint32_t)i};
    for (k = 0; k < 2; k++) {
        const struct cpprof__pgo_line *line = (void *)tables[k]->entries.data;

        n = tables[k]->entries.n / sizeof *line;
        for (i = 0; i < n; i++)
            w->entries[w->n++] = (struct entry){
                &line[i].position, k ? TARGET : LINE, line[i].count, 0};
    }
    for (i = 0; i < w->n; i++)
        if (w->entries[i].count * w->scale > MOST_COUNT)
            w->scale = MOST_COUNT / w->entries[i].count;
    if (w->n)
        qsort(w->entries, w->n, sizeof *w->entries, entry_order);
}

bool
cpprof__pgo_clang(struct cpprof__pgo_tree *tree,
                  const struct cpprof__pgo_counts *counts,
                  struct cpprof__buffer *out, size_t *n_functions,
                  size_t *n_unreadable)
{
    const struct cpprof__pgo_node *node = (void *)tree->nodes.entries.data;
    size_t n = tree->nodes.entries.n / sizeof *node +
               (tree->lines.entries.n + tree->targets.entries.n) /
                   sizeof(struct cpprof__pgo_line),
           i;
    struct writer w = {counts, out,   malloc((n + 1) * sizeof(struct entry)),
                       0,      SCALE, 0};

    *n_functions = 0;
    if (!w.entries)
        return false;
    collect(&w, tree);
    for (i = first_of(&w, CPPROF__PGO_NONE); i < w.n; i++) {
        const struct entry *e = &w.entries[i];

        if (!scaled(&w, e->count))
            break;
        if (!is_readable(&w, e->position->name)) {
            w.n_unreadable++;
            continue;
        }
        cpprof__buffer_printf(
            out, "%s:%" PRIu64 ":%" PRIu64 "\n", name_of(&w, e->position->name),
            scaled(&w, e->count), scaled(&w, node[e->number].head));
        write_body(&w, e->number, 1);
        ++*n_functions;
    }
    *n_unreadable = w.n_unreadable;
    free(w.entries);
    return !out->failed;
}
