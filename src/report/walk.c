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
 *
 * What is looked up per step stands in arrays of its own, small enough to stay
 * in the cache; the nodes themselves are touched once at the end.
 */
#include "report/graph.h"

#include "base/status.h"

#include <stdlib.h>

/* Neither this nor what is above is an edge. */
#define NO_EDGE (UINT32_MAX >> 1)

struct step {
    int64_t sum;
    int64_t divisor_sum;
    uint32_t node;
    uint32_t edge; /* nodes: FIRST or not; edges: the one into it that is
                    * watched, or NO_EDGE, and FIRST */
};

/* The step is the first of its node, or of its edge, on the path. */
#define FIRST (1u << 31)

struct sums {
    int64_t *flat, *cum; /* by node */
};

/* Edges by their ends: open addressing, a power of two of places, at most half
 * of them in use. */
struct edge_place {
    uint64_t ends; /* from << 32 | to */
    uint32_t edge; /* NO_EDGE: free */
};

struct walk {
    struct cpprof__graph *g;
    bool edges;        /* sum up edges, not nodes */
    uint8_t *node_is;  /* by node: KEPT, WATCHED; only for edges */
    uint32_t *on_path; /* by node: how many steps it has; only for nodes */
    struct sums values, divisors; /* the second only with a divisor */
    struct edge_place *places;
    size_t n_places;

    CPPROF__ARRAY(struct step) steps;
    /* The current stack, and how many steps there are behind each of its
     * frames, counted from the root. */
    const uint32_t *frames;
    size_t n_frames;
    CPPROF__ARRAY(size_t) ends;
};

enum {
    KEPT = 1,    /* on the path at all */
    WATCHED = 2, /* edges into it are wanted */
};

/* ------------------------------------------------------------- edges ---- */

static struct edge_place *
find_place(const struct walk *w, uint64_t ends)
{
    size_t mask = w->n_places - 1, i = cpprof__hash_u64(ends) & mask;

    while (w->places[i].edge != NO_EDGE && w->places[i].ends != ends)
        i = (i + 1) & mask;
    return &w->places[i];
}

static bool
grow_places(struct walk *w)
{
    struct edge_place *old = w->places;
    size_t n_old = w->n_places, i;

    w->n_places = n_old ? n_old * 2 : 1024;
    w->places = malloc(w->n_places * sizeof *w->places);
    if (!w->places) {
        w->places = old;
        return false;
    }
    for (i = 0; i < w->n_places; i++)
        w->places[i].edge = NO_EDGE;
    for (i = 0; i < n_old; i++)
        if (old[i].edge != NO_EDGE)
            *find_place(w, old[i].ends) = old[i];
    free(old);
    return true;
}

/* The number of the edge, added if it is new, or NO_EDGE. */
static uint32_t
intern_edge(struct walk *w, uint32_t from, uint32_t to)
{
    uint64_t ends = (uint64_t)from << 32 | to;
    struct cpprof__graph *g = w->g;
    struct edge_place *place;

    if (g->edges.n >= w->n_places / 2 && !grow_places(w))
        return NO_EDGE;
    place = find_place(w, ends);
    if (place->edge != NO_EDGE)
        return place->edge;
    if (g->edges.n >= NO_EDGE || !CPPROF__ARRAY_ROOM(&g->edges, 1))
        return NO_EDGE;
    place->ends = ends;
    place->edge = (uint32_t)g->edges.n;
    g->edges.at[g->edges.n++] =
        (struct cpprof__edge){.from = from, .to = to, .is_inline = true};
    return place->edge;
}

/* -------------------------------------------------------------- path ---- */

/* There is room for the step, here and in the next three. */
static void
enter_node(struct walk *w, uint32_t node)
{
    struct step *step = &w->steps.at[w->steps.n++];

    *step = (struct step){.node = node,
                          .edge = w->on_path[node]++ == 0 ? FIRST : 0};
}

static void
leave_node(struct walk *w)
{
    struct step *step = &w->steps.at[--w->steps.n];

    w->on_path[step->node]--;
    if (w->steps.n)
        step[-1].sum = cpprof__add(step[-1].sum, step->sum);
    if (step->edge & FIRST)
        w->values.cum[step->node] =
            cpprof__add(w->values.cum[step->node], step->sum);
    if (!w->divisors.cum)
        return;
    if (w->steps.n)
        step[-1].divisor_sum =
            cpprof__add(step[-1].divisor_sum, step->divisor_sum);
    if (step->edge & FIRST)
        w->divisors.cum[step->node] =
            cpprof__add(w->divisors.cum[step->node], step->divisor_sum);
}

/* False when out of memory. */
static bool
enter_edge(struct walk *w, uint32_t node, bool is_inline)
{
    struct step *step = &w->steps.at[w->steps.n];
    struct cpprof__edge *edge;

    if (!(w->node_is[node] & KEPT))
        return true;
    *step = (struct step){.node = node, .edge = NO_EDGE};
    if (w->steps.n++ && w->node_is[node] & WATCHED && step[-1].node != node) {
        step->edge = intern_edge(w, step[-1].node, node);
        if (step->edge == NO_EDGE)
            return false;
        edge = &w->g->edges.at[step->edge];
        if (edge->on_path++ == 0) {
            step->edge |= FIRST;
            edge->is_inline &= is_inline;
        }
    }
    return true;
}

static void
leave_edge(struct walk *w)
{
    struct step *step = &w->steps.at[--w->steps.n];

    if (w->steps.n)
        step[-1].sum = cpprof__add(step[-1].sum, step->sum);
    if (step->edge != NO_EDGE) {
        struct cpprof__edge *edge = &w->g->edges.at[step->edge & ~FIRST];

        edge->on_path--;
        if (step->edge & FIRST)
            edge->weight = cpprof__add(edge->weight, step->sum);
    }
}

static inline bool
enter(struct walk *w, uint32_t node, bool is_inline)
{
    if (w->edges)
        return enter_edge(w, node, is_inline);
    enter_node(w, node);
    return true;
}

/* Enter the nodes of a location, from the outermost function inwards. */
static bool
enter_location(struct walk *w, uint32_t location)
{
    const uint32_t *nodes = w->g->location_nodes.at;
    uint32_t only = w->g->only_node[location];
    size_t first, last, i;

    if (only != CPPROF__NO_NODE)
        return CPPROF__ARRAY_ROOM(&w->steps, 1) && enter(w, only, false);
    first = w->g->first_node[location];
    last = w->g->first_node[location + 1];
    if (!CPPROF__ARRAY_ROOM(&w->steps, last - first))
        return false;
    for (i = last; i > first; i--)
        if (!enter(w, nodes[i - 1], i != last))
            return false;
    return true;
}

static void
leave_until(struct walk *w, size_t n_steps)
{
    if (!w->edges)
        while (w->steps.n > n_steps)
            leave_node(w);
    else
        while (w->steps.n > n_steps)
            leave_edge(w);
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

    leave_until(w, shared ? w->ends.at[shared - 1] : 0);
    w->ends.n = shared;
    if (!CPPROF__ARRAY_ROOM(&w->ends, n - shared))
        return false;
    for (i = n - shared; i; i--) {
        if (!enter_location(w, frames[i - 1]))
            return false;
        w->ends.at[w->ends.n++] = w->steps.n;
    }
    w->frames = frames;
    w->n_frames = n;
    return true;
}

static bool
add_sample(struct walk *w, size_t sample)
{
    const struct cpprof__graph *g = w->g;
    const struct cpprof__sample *s = &g->p->samples.at[sample];
    const int64_t *values = cpprof__values(g->p, sample);
    int64_t value = values[g->value], divisor = 0;
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
    top->sum = cpprof__add(top->sum, value);
    top->divisor_sum = cpprof__add(top->divisor_sum, divisor);
    if (w->values.flat)
        w->values.flat[top->node] =
            cpprof__add(w->values.flat[top->node], value);
    if (w->divisors.flat)
        w->divisors.flat[top->node] =
            cpprof__add(w->divisors.flat[top->node], divisor);
    return true;
}

static bool
walk_all(struct walk *w)
{
    size_t i;

    for (i = 0; i < w->g->p->samples.n; i++)
        if (!add_sample(w, i))
            return false;
    leave_until(w, 0);
    return true;
}

static bool
sums_make(struct sums *sums, size_t n)
{
    sums->flat = calloc(n + 1, sizeof *sums->flat);
    sums->cum = calloc(n + 1, sizeof *sums->cum);
    return sums->flat && sums->cum;
}

static enum cpprof_status
walk_free(struct walk *w, bool ok, struct cpprof_error *error)
{
    free(w->node_is);
    free(w->on_path);
    free(w->values.flat);
    free(w->values.cum);
    free(w->divisors.flat);
    free(w->divisors.cum);
    free(w->places);
    CPPROF__ARRAY_FREE(&w->steps);
    CPPROF__ARRAY_FREE(&w->ends);
    return ok ? CPPROF_OK : cpprof__fail_nomem(error);
}

static void
to_nodes(const struct walk *w)
{
    size_t i;

    for (i = 0; i < w->g->nodes.n; i++) {
        struct cpprof__node *node = &w->g->nodes.at[i];

        node->flat = w->values.flat[i];
        node->cum = w->values.cum[i];
        if (w->divisors.cum) {
            node->flat_div = w->divisors.flat[i];
            node->cum_div = w->divisors.cum[i];
        }
    }
}

enum cpprof_status
cpprof__graph_add_values(struct cpprof__graph *g, struct cpprof_error *error)
{
    struct walk w = {.g = g, .frames = g->p->frames.at};
    size_t n = g->nodes.n;
    bool ok;

    w.on_path = calloc(n + 1, sizeof *w.on_path);
    ok = w.on_path && sums_make(&w.values, n) &&
         (g->divisor == CPPROF__NO_DIVISOR || sums_make(&w.divisors, n)) &&
         walk_all(&w);
    if (ok)
        to_nodes(&w);
    return walk_free(&w, ok, error);
}

enum cpprof_status
cpprof__graph_add_edges(struct cpprof__graph *g, const uint8_t *kept,
                        const uint8_t *shown, struct cpprof_error *error)
{
    struct walk w = {.g = g, .edges = true, .frames = g->p->frames.at};
    uint8_t any = 0;
    bool ok;
    size_t i;

    w.node_is = calloc(g->nodes.n + 1, 1);
    ok = w.node_is != NULL;
    for (i = 0; ok && i < g->nodes.n; i++) {
        w.node_is[i] = (kept[i] ? KEPT : 0) |
                       (shown[i] && g->nodes.at[i].inlinable ? WATCHED : 0);
        any |= w.node_is[i];
    }
    if (any & WATCHED)
        ok = walk_all(&w);
    return walk_free(&w, ok, error);
}
