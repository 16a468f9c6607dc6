/* SPDX-License-Identifier: MIT */
/*
 * The largest text tags get a box each. Numbers get a box each where they are
 * few, else they are gathered around the largest of them into ranges. Source:
 * internal/graph/dotgraph.go addNodelets, collapsedTags.
 */
#include "own/memory.h"
#include "report/dot/dot_text.h"
#include "report/dot/visual.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tag, or a range of them, as it is drawn. */
struct box {
    const struct cpprof__tag *tag; /* the first one */
    /* Sums of the whole range. */
    int64_t flat, flat_div, cum, cum_div;
    const struct cpprof__tag *least, *most;
    const char *labels;                    /* escaped already; or NULL */
    char text[2 * CPPROF__LABEL_TEXT + 2]; /* where there are no labels */
    bool is_range;
};

struct boxes {
    const struct cpprof__visual *v;
    struct cpprof__report *r;
    bool own; /* only flat values count */
};

static const char *
unit_of(const struct boxes *b, const struct cpprof__tag *tag)
{
    return cpprof__strings_text(&b->r->p->strings, tag->unit);
}

static const char *
text_of(const struct box *box)
{
    return box->labels ? box->labels : box->text;
}

static int
by_size(int64_t a, int64_t b)
{
    int64_t m = cpprof__abs(a), n = cpprof__abs(b);

    return (m < n) - (m > n);
}

static int
compare(const void *x, const void *y, void *ctx)
{
    const struct boxes *b = ctx;
    const struct box *m = x, *n = y;
    int order = 0;

    if (!b->own && m->cum != n->cum)
        order = by_size(m->cum, n->cum);
    if (!order && m->flat != n->flat)
        order = by_size(m->flat, n->flat);
    return order ? order : strcmp(text_of(m), text_of(n));
}

static void
sort(const struct boxes *b, struct box *boxes, size_t n)
{
    if (n)
        qsort_r(boxes, n, sizeof *boxes, compare, (void *)b);
}

/* The tags of a node with those labels: texts (labels is then NULL), or their
 * numbers. Freed by the caller. */
static struct box *
collect(const struct boxes *b, uint32_t node, const uint32_t *labels, size_t *n)
{
    const struct cpprof__node_tags *tags = &b->v->tags;
    size_t first = tags->by_node.first[node],
           last = tags->by_node.first[node + 1], i;
    struct box *boxes = cpprof__malloc((last - first + 1) * sizeof *boxes);

    *n = 0;
    for (i = first; boxes && i < last; i++) {
        const struct cpprof__tag *tag = &tags->all.at[tags->by_node.list[i]];
        struct box *box = &boxes[*n];

        if (labels ? !tag->name || tag->labels != *labels : tag->name != 0)
            continue;
        box->tag = box->least = box->most = tag;
        box->flat = tag->flat;
        box->flat_div = tag->flat_div;
        box->cum = tag->cum;
        box->cum_div = tag->cum_div;
        box->is_range = false;
        box->labels =
            labels ? NULL : cpprof__strings_text(&tags->texts, tag->labels);
        snprintf(box->text, sizeof box->text, "%s",
                 labels ? cpprof__strings_text(&tags->texts, tag->name) : "");
        ++*n;
    }
    return boxes;
}

/* ------------------------------------------------------------ ranges ---- */

static double
distance(const struct boxes *b, const struct cpprof__tag *t,
         const struct cpprof__tag *u)
{
    double v;

    cpprof__scale(u->number, unit_of(b, u), unit_of(b, t), &v);
    return v < (double)t->number ? (double)t->number - v
                                 : v - (double)t->number;
}

static int64_t
in_unit_of(const struct boxes *b, const struct cpprof__tag *t,
           const struct cpprof__tag *other)
{
    double v;

    cpprof__scale(t->number, unit_of(b, t), unit_of(b, other), &v);
    return cpprof__to_int64(v);
}

static void
join(const struct boxes *b, struct box *range, const struct box *box)
{
    const struct cpprof__tag *t = box->tag;

    if (in_unit_of(b, t, range->least) < range->least->number)
        range->least = t;
    if (in_unit_of(b, t, range->most) > range->most->number)
        range->most = t;
    range->flat = cpprof__add(range->flat, t->flat);
    range->flat_div = cpprof__add(range->flat_div, t->flat_div);
    range->cum = cpprof__add(range->cum, t->cum);
    range->cum_div = cpprof__add(range->cum_div, t->cum_div);
    range->is_range = true;
}

static void
name_range(const struct boxes *b, struct box *box)
{
    char least[CPPROF__LABEL_TEXT], most[CPPROF__LABEL_TEXT];

    cpprof__scaled_label(least, box->least->number, unit_of(b, box->least),
                         "auto");
    cpprof__scaled_label(most, box->most->number, unit_of(b, box->most),
                         "auto");
    if (box->is_range)
        snprintf(box->text, sizeof box->text, "%s..%s", least, most);
    else
        snprintf(box->text, sizeof box->text, "%s", least);
    /* Values of a range are what is drawn, means included. */
    box->flat = cpprof__mean(box->flat, box->flat_div);
    box->cum = cpprof__mean(box->cum, box->cum_div);
    box->flat_div = box->cum_div = 0;
}

/* Sorted boxes, in at most CPPROF__MOST_TAGS ranges; how many. */
static size_t
collapse(const struct boxes *b, struct box *boxes, size_t n)
{
    size_t i, j;

    sort(b, boxes, n);
    if (n <= CPPROF__MOST_TAGS)
        return n;
    for (i = CPPROF__MOST_TAGS; i < n; i++) {
        size_t nearest = 0;
        double best = distance(b, boxes[i].tag, boxes[0].tag);

        for (j = 1; j < CPPROF__MOST_TAGS; j++) {
            double d = distance(b, boxes[i].tag, boxes[j].tag);

            if (d < best) {
                best = d;
                nearest = j;
            }
        }
        join(b, &boxes[nearest], &boxes[i]);
    }
    for (i = 0; i < CPPROF__MOST_TAGS; i++)
        name_range(b, &boxes[i]);
    sort(b, boxes, CPPROF__MOST_TAGS);
    return CPPROF__MOST_TAGS;
}

/* ----------------------------------------------------------- drawing ---- */

static void
append_text(const struct boxes *b, const struct box *box)
{
    size_t n, shown, i = 0;

    if (!box->labels) {
        cpprof__dot_escape(box->text, strlen(box->text), &b->r->out);
        return;
    }
    n = strlen(box->labels);
    shown = cpprof__utf8_prefix(box->labels, n, cpprof__dot_most(b->r, false));
    while (i < shown) /* no escape is cut in two */
        i += box->labels[i] == '\\' ? 2 : 1;
    shown = i > n ? n : i;
    cpprof__buffer_append(&b->r->out, box->labels, shown);
    if (shown < n)
        cpprof__buffer_printf(&b->r->out, "...");
}

/* A box and the line to it from `source`. */
static void
draw(const struct boxes *b, const char *source, const char *prefix, size_t i,
     const struct box *box, int64_t value, const char *style)
{
    struct cpprof__buffer *out = &b->r->out;
    char weight[CPPROF__DOT_VALUE];

    cpprof__dot_value(b->r, value, weight);
    cpprof__buffer_printf(out, "%s%s_%zu [label = \"", prefix, source, i);
    append_text(b, box);
    cpprof__buffer_printf(out,
                          "\" id=\"%s%s_%zu\" fontsize=8 shape=box3d "
                          "tooltip=\"%s\"]\n",
                          prefix, source, i, weight);
    cpprof__buffer_printf(out,
                          "%s -> %s%s_%zu [label=\" %s\" weight=100 "
                          "tooltip=\"%s\" labeltooltip=\"%s\"%s]\n",
                          source, prefix, source, i, weight, weight, weight,
                          style);
}

/* The numbers under some labels; how many boxes. */
static size_t
draw_numbers(const struct boxes *b, uint32_t node, uint32_t labels,
             const char *source, bool *failed)
{
    size_t n, i, n_drawn = 0;
    struct box *boxes = collect(b, node, &labels, &n);

    *failed |= !boxes;
    n = boxes ? collapse(b, boxes, n) : 0;
    for (i = 0; i < n; i++) {
        int64_t flat = cpprof__mean(boxes[i].flat, boxes[i].flat_div);
        int64_t cum = cpprof__mean(boxes[i].cum, boxes[i].cum_div);
        bool solid = b->own || flat == cum;

        if (!(solid ? flat : cum))
            continue;
        draw(b, source, "N", i, &boxes[i], solid ? flat : cum,
             solid ? "" : " style=\"dotted\"");
        n_drawn++;
    }
    cpprof__free(boxes);
    return n_drawn;
}

static size_t
draw_texts(const struct boxes *b, uint32_t node, size_t id, bool *failed)
{
    size_t n, i, n_drawn = 0;
    struct box *boxes = collect(b, node, NULL, &n);
    char source[2][64];

    *failed |= !boxes;
    if (boxes)
        sort(b, boxes, n);
    snprintf(source[0], sizeof source[0], "N%zu", id);
    for (i = 0; i < n && i < CPPROF__MOST_TAGS; i++) {
        int64_t value = b->own ? cpprof__mean(boxes[i].flat, boxes[i].flat_div)
                               : cpprof__mean(boxes[i].cum, boxes[i].cum_div);

        if (!value)
            continue;
        draw(b, source[0], "", i, &boxes[i], value, "");
        snprintf(source[1], sizeof source[1], "N%zu_%zu", id, i);
        n_drawn +=
            1 + draw_numbers(b, node, boxes[i].tag->labels, source[1], failed);
    }
    cpprof__free(boxes);
    return n_drawn;
}

bool
cpprof__dot_tags(const struct cpprof__visual *v, uint32_t node, size_t id,
                 bool has_calls, bool *failed)
{
    struct boxes b = {v, v->t.r, has_calls};
    char source[32];
    size_t n;

    if (v->tags.by_node.first[node] == v->tags.by_node.first[node + 1])
        return false;
    snprintf(source, sizeof source, "N%zu", id);
    n = draw_texts(&b, node, id, failed);
    return n + draw_numbers(&b, node, 0, source, failed);
}
