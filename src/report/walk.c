/* SPDX-License-Identifier: MIT */
/*
 * Samples into nodes and edges.
 *
 * The stacks of neighbouring samples mostly begin alike at the root. So the
 * walk keeps the path from the root to the current sample's leaf, and goes
 * from one sample to the next by leaving and entering only the frames in which
 * they differ. A step collects the values of all samples that it is on the
 * path of; when it is left, it hands them to its node and to its caller. The
 * sums are the same as if every sample were walked from end to end.
 *
 * A node that a stack has more than once gets a sample once: only the step
 * nearest to the root counts for it, and likewise for edges.
 */
#include "report/graph.h"

#include "base/status.h"

#include <stdlib.h>

struct step {
    uint32_t node;
    uint32_t edge; /* the edge into it that is watched, or NO_EDGE */
    bool counts;   /* the first of its node, or of its edge, on the path */
    int64_t sum, divisor_sum;
};

#define NO_EDGE UINT32_MAX

struct walk {
    struct cpprof__graph *g;
    const uint8_t *kept; /* by node; NULL: sum up nodes, not edges */
    CPPROF__ARRAY(struct step) steps;
    /* The current stack, and how many steps there are behind each of its
     * frames, counted from the root. */
    const uint32_t *frames;
    size_t n_frames;
    CPPROF__ARRAY(size_t) ends;
    uint32_t *on_path; /* by node: how many steps it has */
};

static int64_t
add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* ------------------------------------------------------------- edges ---- */

struct wanted {
    const struct cpprof__graph *g;
    uint32_t from, to;
};

static bool
is_wanted(void *ctx, uint32_t value)
{
    const struct wanted *w = ctx;
    const struct cpprof__edge *e = &w->g->edges.at[value];

    return e->from == w->from && e->to == w->to;
}

static uint32_t
intern_edge(struct cpprof__graph *g, uint32_t from, uint32_t to)
{
    struct wanted wanted = {g, from, to};
    uint64_t hash = cpprof__hash_u64((uint64_t)from << 32 | to);
    uint32_t at = cpprof__index_find(&g->edge_index, hash, is_wanted, &wanted);

    if (at != CPPROF__INDEX_NONE)
        return at;
    at = (uint32_t)g->edges.n;
    if (g->edges.n >= NO_EDGE || !CPPROF__ARRAY_ROOM(&g->edges, 1) ||
        !cpprof__index_add(&g->edge_index, hash, at))
        return NO_EDGE;
    g->edges.at[g->edges.n++] =
        (struct cpprof__edge){.from = from, .to = to, .is_inline = true};
    return at;
}

/* Set the step's edge from the step below it; false when out of memory. */
static bool
enter_edge(struct walk *w, struct step *step, bool is_inline)
{
    struct cpprof__edge *edge;

    step->edge = NO_EDGE;
    if (!w->steps.n || !w->g->nodes.at[step->node].inlinable ||
        step[-1].node == step->node)
        return true;
    step->edge = intern_edge(w->g, step[-1].node, step->node);
    if (step->edge == NO_EDGE)
        return false;
    edge = &w->g->edges.at[step->edge];
    step->counts = edge->on_path++ == 0;
    if (step->counts && !is_inline)
        edge->is_inline = false;
    return true;
}

/* -------------------------------------------------------------- path ---- */

/* There is room for the step. */
static bool
enter(struct walk *w, uint32_t node, bool is_inline)
{
    struct step *step = &w->steps.at[w->steps.n];

    if (w->kept && !w->kept[node])
        return true;
    step->node = node;
    step->sum = step->divisor_sum = 0;
    if (w->kept) {
        if (!enter_edge(w, step, is_inline))
            return false;
    } else {
        step->counts = w->on_path[node]++ == 0;
    }
    w->steps.n++;
    return true;
}

static void
leave(struct walk *w)
{
    struct step *step = &w->steps.at[--w->steps.n];
    struct cpprof__node *node = &w->g->nodes.at[step->node];

    if (w->steps.n) {
        step[-1].sum = add(step[-1].sum, step->sum);
        step[-1].divisor_sum = add(step[-1].divisor_sum, step->divisor_sum);
    }
    if (!w->kept) {
        w->on_path[step->node]--;
        if (step->counts) {
            node->cum = add(node->cum, step->sum);
            node->cum_div = add(node->cum_div, step->divisor_sum);
        }
    } else if (step->edge != NO_EDGE) {
        struct cpprof__edge *edge = &w->g->edges.at[step->edge];

        edge->on_path--;
        if (step->counts)
            edge->weight = add(edge->weight, step->sum);
    }
}

/* Enter the nodes of a location, from the outermost function inwards. */
static bool
enter_location(struct walk *w, uint32_t location)
{
    size_t first = w->g->first_node[location];
    size_t last = w->g->first_node[location + 1], i;

    if (!CPPROF__ARRAY_ROOM(&w->steps, last - first))
        return false;
    for (i = last; i > first; i--)
        if (!enter(w, w->g->location_nodes.at[i - 1], i != last))
            return false;
    w->ends.at[w->ends.n++] = w->steps.n;
    return true;
}

/* How many frames the stacks have in common, from the root. */
static size_t
common(const struct walk *w, const uint32_t *frames, size_t n)
{
    const uint32_t *a = w->frames + w->n_frames, *b = frames + n;
    size_t most = n < w->n_frames ? n : w->n_frames, i;

    for (i = 0; i < most && a[-1 - (ptrdiff_t)i] == b[-1 - (ptrdiff_t)i]; i++)
        ;
    return i;
}

static bool
move_to(struct walk *w, const uint32_t *frames, size_t n)
{
    size_t shared = common(w, frames, n), i;
    size_t n_steps = shared ? w->ends.at[shared - 1] : 0;

    while (w->steps.n > n_steps)
        leave(w);
    w->ends.n = shared;
    if (!CPPROF__ARRAY_ROOM(&w->ends, n - shared))
        return false;
    for (i = n - shared; i; i--)
        if (!enter_location(w, frames[i - 1]))
            return false;
    w->frames = frames;
    w->n_frames = n;
    return true;
}

static bool
add_sample(struct walk *w, size_t sample)
{
    struct cpprof__graph *g = w->g;
    const struct cpprof__sample *s = &g->p->samples.at[sample];
    const int64_t *values = cpprof__values(g->p, sample);
    int64_t value = values[g->value], divisor = 0;
    struct cpprof__node *leaf;
    struct step *top;

    if (g->divisor != CPPROF__NO_DIVISOR)
        divisor = values[g->divisor];
    if (!value && !divisor)
        return true;
    if (!move_to(w, g->p->frames.at + s->first_frame, s->n_frames))
        return false;
    if (!w->steps.n)
        return true;
    top = &w->steps.at[w->steps.n - 1];
    top->sum = add(top->sum, value);
    top->divisor_sum = add(top->divisor_sum, divisor);
    if (!w->kept) {
        leaf = &g->nodes.at[top->node];
        leaf->flat = add(leaf->flat, value);
        leaf->flat_div = add(leaf->flat_div, divisor);
    }
    return true;
}

static enum cpprof_status
walk_all(struct cpprof__graph *g, const uint8_t *kept,
         struct cpprof_error *error)
{
    struct walk w = {.g = g, .kept = kept, .frames = g->p->frames.at};
    bool ok;
    size_t i;

    w.on_path = calloc(g->nodes.n + 1, sizeof *w.on_path);
    ok = w.on_path != NULL;
    for (i = 0; ok && i < g->p->samples.n; i++)
        ok = add_sample(&w, i);
    while (ok && w.steps.n)
        leave(&w);
    free(w.on_path);
    CPPROF__ARRAY_FREE(&w.steps);
    CPPROF__ARRAY_FREE(&w.ends);
    return ok ? CPPROF_OK : cpprof__fail_nomem(error);
}

enum cpprof_status
cpprof__graph_add_values(struct cpprof__graph *g, struct cpprof_error *error)
{
    return walk_all(g, NULL, error);
}

/* Is any node that is kept ever inlined? Else there is nothing to find. */
static bool
any_inlinable(const struct cpprof__graph *g, const uint8_t *kept)
{
    size_t i;

    for (i = 0; i < g->nodes.n; i++)
        if (kept[i] && g->nodes.at[i].inlinable)
            return true;
    return false;
}

enum cpprof_status
cpprof__graph_add_edges(struct cpprof__graph *g, const uint8_t *kept,
                        struct cpprof_error *error)
{
    return any_inlinable(g, kept) ? walk_all(g, kept, error) : CPPROF_OK;
}
