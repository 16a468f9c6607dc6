/* SPDX-License-Identifier: MIT */
/*
 * Boxes as JSON, for pages that draw them: one by one from the root, each
 * before its children, and each name once. The tree is that of stack_tree.c.
 *
 * A box that is enlarged is looked for in the samples, one after the other,
 * until a stack begins with its path. A large box, which is what people click
 * on, is found in one of the first of them. For a small one most stacks are
 * left after a few calls, if the way to it is known.
 *
 * A search adds up samples, not boxes: most functions of a profile have boxes
 * that are too small to be sent.
 */
#include "report/flame/boxes.h"

#include "base/status.h"
#include "base/text.h"
#include "own/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct drawing {
    struct cpprof__report *r;
    struct cpprof__graph g;
    struct cpprof__stack_tree tree;
    uint8_t *pivots; /* by node, or NULL */
    uint32_t *name;  /* by node: its number in "names", + 1 */
    uint32_t n_names;
    CPPROF__ARRAY(uint32_t) way; /* to the box that is enlarged */
    bool is_found;               /* it is there */
};

static struct cpprof__buffer *
out_of(struct drawing *d)
{
    return &d->r->sink.buffer;
}

static bool
folds_of(const struct cpprof__report *r)
{
    return r->options->flags & PPROF_REPORT_FOLD_RECURSION;
}

/* ------------------------------------------------------------ matches ---- */

/* Set *made to a byte for each node: does its name match? To be freed in any
 * case. `what` names the expression in errors. */
static enum cpprof_status
find_matches(struct drawing *d, const char *expression, const char *what,
             uint8_t **made)
{
    struct cpprof_error *error = d->r->error;
    struct cpprof__buffer name = {0};
    struct cpprof__regexp *matching;
    enum cpprof_status status;
    size_t i;

    status = cpprof__regexp_make(expression, what, &matching, error);
    if (status != CPPROF_OK)
        return status;
    *made = cpprof__calloc(d->g.nodes.n + 1, 1);
    for (i = 0; *made && i < d->g.nodes.n; i++) {
        name.n = 0;
        cpprof__stacks_name(&d->g, &d->g.nodes.at[i], &name);
        (*made)[i] = cpprof__regexp_matches(
            matching, name.n ? (char *)name.data : "", name.n);
    }
    status = cpprof__regexp_status(matching, error);
    if (status == CPPROF_OK && (!*made || name.failed))
        status = cpprof__fail_nomem(error);
    cpprof__regexp_free(matching);
    cpprof__buffer_free(&name);
    return status;
}

/* --------------------------------------------------------------- zoom ---- */

/* Two sums over characters, or over those of names (boxes.h). */
struct sums {
    uint32_t a, b;
};

static const struct sums no_sums = {2166136261u, 0x9747b28cu};

static struct sums
add(struct sums s, uint32_t a, uint32_t b)
{
    s.a = (s.a ^ a) * 16777619u;
    s.b = (s.b ^ b) * 0x5bd1e995u;
    s.b ^= s.b >> 15;
    return s;
}

/* Of the characters that the page is told. */
static struct sums
sums_of(const char *text, size_t n)
{
    const char *end = text + n;
    struct sums s = no_sums;

    while (text < end) {
        uint32_t c;
        size_t length = cpprof__utf8_next(text, (size_t)(end - text), &c);

        c = length ? c : 0xfffd;
        s = add(s, c, c);
        text += length ? length : 1;
    }
    return s;
}

static struct sums *
sums_of_names(struct drawing *d)
{
    struct sums *sums = cpprof__malloc((d->g.nodes.n + 1) * sizeof *sums);
    struct cpprof__buffer name = {0};
    size_t i;

    for (i = 0; sums && i < d->g.nodes.n; i++) {
        name.n = 0;
        cpprof__stacks_name(&d->g, &d->g.nodes.at[i], &name);
        sums[i] = sums_of(name.n ? (char *)name.data : "", name.n);
    }
    if (name.failed) {
        cpprof__free(sums);
        sums = NULL;
    }
    cpprof__buffer_free(&name);
    return sums;
}

/* What is looked for. */
struct wanted {
    struct sums path;
    const struct sums *names;     /* by node */
    CPPROF__ARRAY(uint8_t) steps; /* the last byte of sum a, box by box */
};

/* Does the stack of a sample begin with the path? Then `way` is it. */
static bool
leads_there(struct drawing *d, size_t sample, const struct wanted *wanted)
{
    enum cpprof__stack_order order = d->r->view->order;
    struct cpprof__stack_rest rest;
    struct sums path = no_sums;
    uint32_t node = CPPROF__NO_NODE;
    bool is_inline, folds = folds_of(d->r);

    d->way.n = 0;
    if (!cpprof__values(d->g.p, sample)[d->g.value] ||
        !cpprof__stack_start(&d->g, order, d->pivots, sample, &rest))
        return false;
    while (cpprof__stack_step_over(&d->g, order, sample, &rest,
                                   folds ? node : CPPROF__NO_NODE, &node,
                                   &is_inline) &&
           CPPROF__ARRAY_ROOM(&d->way, 1)) {
        path = add(path, wanted->names[node].a, wanted->names[node].b);
        if (wanted->steps.n && (d->way.n >= wanted->steps.n ||
                                wanted->steps.at[d->way.n] != (uint8_t)path.a))
            return false;
        d->way.at[d->way.n++] = node;
        if (path.a == wanted->path.a && path.b == wanted->path.b)
            return true;
    }
    return false;
}

/* "SUMS" or "SUMS-STEPS", all of them in hexadecimal digits. */
static bool
parse_zoom(const char *text, struct wanted *wanted)
{
    unsigned step;
    int n = 0;

    if (strspn(text, "0123456789abcdefABCDEF") != 16 ||
        sscanf(text, "%8" SCNx32 "%8" SCNx32 "%n", &wanted->path.a,
               &wanted->path.b, &n) != 2)
        return false;
    text += n;
    if (*text == '-')
        for (text++; sscanf(text, "%2x%n", &step, &n) == 1 && n == 2; text += 2)
            if (CPPROF__ARRAY_ROOM(&wanted->steps, 1))
                wanted->steps.at[wanted->steps.n++] = (uint8_t)step;
    return !*text;
}

static enum cpprof_status
find_zoomed(struct drawing *d)
{
    struct sums *names = sums_of_names(d);
    struct wanted wanted = {.names = names};
    enum cpprof_status status = CPPROF_OK;
    size_t i;

    if (!names)
        status = cpprof__fail_nomem(d->r->error);
    else if (!parse_zoom(d->r->view->zoom, &wanted))
        status = cpprof__fail(d->r->error, CPPROF_BAD_DATA, 0,
                              "the zoom is not 16 hexadecimal digits");
    for (i = 0; status == CPPROF_OK && i < d->g.p->samples.n && !d->is_found;
         i++)
        d->is_found = leads_there(d, i, &wanted);
    if (!d->is_found)
        d->way.n = 0;
    CPPROF__ARRAY_FREE(&wanted.steps);
    cpprof__free(names);
    return status;
}

/* ------------------------------------------------------------- boxes ---- */

static void
print_name(struct drawing *d, const char *text, size_t n)
{
    cpprof__buffer_printf(out_of(d), d->n_names++ ? ",\n" : "\n");
    cpprof__json_text(out_of(d), text, n);
}

/* Each name once, in the order of the boxes; the first is of the root. */
static void
print_names(struct drawing *d)
{
    size_t i;

    cpprof__buffer_printf(out_of(d), ",\n\"names\":[");
    print_name(d, "root", 4);
    for (i = 1; i < d->tree.boxes.n; i++) {
        uint32_t node = d->tree.boxes.at[i].node;
        struct cpprof__buffer name = {0};

        if (d->name[node])
            continue;
        d->name[node] = d->n_names;
        cpprof__stacks_name(&d->g, &d->g.nodes.at[node], &name);
        print_name(d, name.n ? (char *)name.data : "", name.n);
        out_of(d)->failed |= name.failed;
        cpprof__buffer_free(&name);
        cpprof__sink_mind(&d->r->sink);
    }
    cpprof__buffer_printf(out_of(d), "]");
}

static void
print_box(struct drawing *d, const struct cpprof__box *b, bool is_root)
{
    /* Sums may exceed printf's integers, and the page counts in doubles. */
    cpprof__buffer_printf(out_of(d), "%s%u,%d,%u,%.17g,%.17g,%.17g,%.17g",
                          is_root ? "\n" : ",", is_root ? 0 : d->name[b->node],
                          !is_root && b->is_inline, b->n_children,
                          (double)b->positive, (double)b->negative,
                          (double)b->self_positive, (double)b->self_negative);
    cpprof__sink_mind(&d->r->sink);
}

/* A box above the one that is printed. */
struct level {
    uint32_t next, end; /* its children that are still to be printed */
};

/* From the root on, each box before its children. */
static bool
print_boxes(struct drawing *d)
{
    CPPROF__ARRAY(struct level) way = {0};
    bool ok = true;

    cpprof__buffer_printf(out_of(d), ",\n\"boxes\":[");
    ok = CPPROF__ARRAY_ROOM(&way, 1);
    if (ok)
        way.at[way.n++] = (struct level){0, 1};
    while (ok && way.n) {
        struct level *top = &way.at[way.n - 1];
        const struct cpprof__box *b;

        if (top->next == top->end) {
            way.n--;
            continue;
        }
        b = &d->tree.boxes.at[top->next];
        print_box(d, b, top->next == 0);
        top->next++;
        ok = CPPROF__ARRAY_ROOM(&way, 1);
        if (ok)
            way.at[way.n++] =
                (struct level){b->first_child, b->first_child + b->n_children};
    }
    CPPROF__ARRAY_FREE(&way);
    cpprof__buffer_printf(out_of(d), "]}\n");
    return ok;
}

static bool
print(struct drawing *d)
{
    cpprof__print_data_head(d->r, out_of(d));
    cpprof__buffer_printf(out_of(d), ",\"diff\":%s,\"cut\":%s",
                          d->tree.boxes.at[0].negative ? "true" : "false",
                          d->tree.is_cut ? "true" : "false");
    if (d->r->view)
        cpprof__buffer_printf(out_of(d), ",\"zoom\":%d",
                              d->is_found ? (int)d->way.n : -1);
    print_names(d);
    return print_boxes(d);
}

/* The graph, and what a view asks of it: the pivots, and the way to the box
 * that is enlarged. */
static enum cpprof_status
begin(struct drawing *d)
{
    const struct cpprof__view *view = d->r->view;
    enum cpprof_status status = cpprof__stacks_graph(&d->g, d->r);

    if (status == CPPROF_OK && view && view->order >= CPPROF__CALLEES)
        status = find_matches(d, view->pivot, "pivot", &d->pivots);
    if (status == CPPROF_OK && view && view->zoom)
        status = find_zoomed(d);
    return status;
}

static void
end(struct drawing *d)
{
    cpprof__stack_tree_free(&d->tree);
    cpprof__graph_free(&d->g);
    CPPROF__ARRAY_FREE(&d->way);
    cpprof__free(d->pivots);
    cpprof__free(d->name);
}

enum cpprof_status
cpprof__print_boxes(struct cpprof__report *r, struct cpprof__stack_cut cut)
{
    const struct cpprof__view *view = r->view;
    struct drawing d = {.r = r};
    enum cpprof_status status = begin(&d);

    cut.order = view ? view->order : CPPROF__FROM_ROOT;
    cut.folds = folds_of(r);
    cut.pivots = d.pivots;
    cut.way = d.way.at;
    cut.n_way = d.way.n;
    if (status == CPPROF_OK)
        status = cpprof__stack_tree_make(&d.tree, &d.g, &cut, r->error);
    d.name = cpprof__calloc(d.g.nodes.n + 1, sizeof *d.name);
    if (status == CPPROF_OK && (!d.name || !print(&d)))
        status = cpprof__fail_nomem(r->error);
    end(&d);
    return status;
}

enum cpprof_status
cpprof__boxes_view(struct cpprof__report *r)
{
    return cpprof__print_boxes(
        r, (struct cpprof__stack_cut){.fraction = r->view->fraction,
                                      .max_boxes = r->view->max_boxes});
}

/* ------------------------------------------------------------- search ---- */

/* Has the stack of a sample, from the box that is enlarged on, a match? */
static bool
has_match(const struct drawing *d, size_t sample, const uint8_t *matches)
{
    enum cpprof__stack_order order = d->r->view->order;
    struct cpprof__stack_rest rest;
    uint32_t node = CPPROF__NO_NODE;
    bool is_inline, folds = folds_of(d->r);
    size_t depth = 0;

    if (!cpprof__stack_start(&d->g, order, d->pivots, sample, &rest))
        return false;
    while (cpprof__stack_step_over(&d->g, order, sample, &rest,
                                   folds ? node : CPPROF__NO_NODE, &node,
                                   &is_inline)) {
        if (depth < d->way.n && node != d->way.at[depth])
            return false;
        if (++depth >= d->way.n && matches[node])
            return true;
    }
    return false;
}

static void
print_found(struct drawing *d, const uint8_t *matches)
{
    bool is_lost = d->r->view->zoom && !d->is_found;
    __int128 sum = 0; /* of any number of values */
    size_t i;

    for (i = 0; !is_lost && i < d->g.p->samples.n; i++) {
        int64_t value = cpprof__values(d->g.p, i)[d->g.value];

        if (value && has_match(d, i, matches))
            sum += value;
    }
    cpprof__buffer_printf(out_of(d), "{\"value\":%.17g,\"names\":[",
                          (double)sum);
    for (i = 0; i < d->g.nodes.n; i++) {
        struct cpprof__buffer name = {0};

        if (!matches[i])
            continue;
        cpprof__stacks_name(&d->g, &d->g.nodes.at[i], &name);
        print_name(d, name.n ? (char *)name.data : "", name.n);
        out_of(d)->failed |= name.failed;
        cpprof__buffer_free(&name);
        cpprof__sink_mind(&d->r->sink);
    }
    cpprof__buffer_printf(out_of(d), "]}\n");
}

enum cpprof_status
cpprof__found_view(struct cpprof__report *r)
{
    struct drawing d = {.r = r};
    uint8_t *matches = NULL;
    enum cpprof_status status = begin(&d);

    if (status == CPPROF_OK)
        status = find_matches(&d, r->view->search ? r->view->search : "",
                              "search", &matches);
    if (status == CPPROF_OK)
        print_found(&d, matches);
    cpprof__free(matches);
    end(&d);
    return status;
}
