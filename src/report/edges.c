/* SPDX-License-Identifier: MIT */
/*
 * Samples into edges: from which callers a node is called, and whether all
 * calls from there were inlined.
 *
 * An edge that a stack has more than once gets a sample once. An edge is
 * looked up when its step is left, not when it is entered: the table's memory
 * was asked for in between, and nothing has to hold a place in a table that
 * grows.
 */
#include "report/path.h"

#include "base/status.h"

#include <stdlib.h>

/* Open addressing; a power of two of places, at most three quarters in use. */
struct place {
    uint64_t ends; /* from << 32 | to, and bits; FREE: nothing here */
    int64_t weight;
};

#define FREE  UINT64_MAX
#define OTHER (1ULL << 63) /* some call along it was not inlined */
#define OVER  (1ULL << 62) /* some call along it went over others */
#define BITS  (OTHER | OVER)

/* What is known of a location: its only node, and bits; or one of these. */
#define WATCHED    (1u << 31)        /* edges into the node are wanted */
#define LEFT_OUT   (UINT32_MAX - 1)  /* the node is not kept */
#define SEVERAL    UINT32_MAX        /* look at location_nodes */
#define MOST_NODES ((size_t)1 << 30) /* so that the bits fit */

struct walk {
    struct cpprof__graph *g;
    struct cpprof__path path;
    uint32_t *nodes;     /* by node: itself, WATCHED; or LEFT_OUT */
    uint32_t *locations; /* by location */
    uint32_t *on_path;   /* by node: how many steps it has */
    struct place *places;
    int64_t *divisors; /* by place; NULL where there is none */
    size_t n_places, n_edges;
    bool over;         /* the last node on the way here is left out */
    bool over_inlined; /* and all such since one that is not were inlined */
};

/* ------------------------------------------------------------- table ---- */

static size_t
place_of(const struct walk *w, uint64_t ends)
{
    return cpprof__hash_u64(ends) & (w->n_places - 1);
}

static struct place *
find(const struct walk *w, uint64_t ends)
{
    size_t i = place_of(w, ends);

    while (w->places[i].ends != FREE && (w->places[i].ends & ~BITS) != ends)
        i = (i + 1) & (w->n_places - 1);
    return &w->places[i];
}

static void
move_places(struct walk *w, const struct walk *old)
{
    size_t i;

    for (i = 0; i < old->n_places; i++) {
        struct place *place;

        if (old->places[i].ends == FREE)
            continue;
        place = find(w, old->places[i].ends & ~BITS);
        *place = old->places[i];
        if (w->divisors)
            w->divisors[place - w->places] = old->divisors[i];
    }
}

static bool
grow(struct walk *w)
{
    struct walk old = *w;
    size_t n = w->n_places ? w->n_places * 2 : 1024, i;
    bool divide = w->g->divisor != CPPROF__NO_DIVISOR;
    struct place *places = malloc(n * sizeof *places);
    int64_t *divisors = divide ? calloc(n, sizeof *divisors) : NULL;

    if (!places || (divide && !divisors)) {
        free(places);
        free(divisors);
        return false;
    }
    for (i = 0; i < n; i++)
        places[i].ends = FREE;
    w->places = places;
    w->divisors = divisors;
    w->n_places = n;
    move_places(w, &old);
    free(old.places);
    free(old.divisors);
    return true;
}

/* ------------------------------------------------------------- steps ---- */

/* False when out of memory. */
static bool
leave(struct walk *w)
{
    struct cpprof__step *step = &w->path.steps.at[--w->path.steps.n];
    struct place *place;
    uint64_t ends;

    w->on_path[step->node]--;
    if (w->path.steps.n) {
        step[-1].sum = cpprof__add(step[-1].sum, step->sum);
        step[-1].divisor_sum =
            cpprof__add(step[-1].divisor_sum, step->divisor_sum);
    }
    if (!(step->flags & CPPROF__STEP_EDGE))
        return true;
    if (w->n_edges >= w->n_places / 4 * 3 && !grow(w))
        return false;
    ends = (uint64_t)step[-1].node << 32 | step->node;
    place = find(w, ends);
    if (place->ends == FREE) {
        *place = (struct place){ends, 0};
        w->n_edges++;
    }
    if (!(step->flags & CPPROF__STEP_INLINE))
        place->ends |= OTHER;
    if (step->flags & CPPROF__STEP_OVER)
        place->ends |= OVER;
    if (w->divisors)
        w->divisors[place - w->places] =
            cpprof__add(w->divisors[place - w->places], step->divisor_sum);
    place->weight = cpprof__add(place->weight, step->sum);
    return true;
}

static bool
leave_until(struct walk *w, size_t n_steps)
{
    while (w->path.steps.n > n_steps)
        if (!leave(w))
            return false;
    return true;
}

/* Is the edge between the last two steps on the path before them? */
static bool
is_repeated(const struct walk *w)
{
    const struct cpprof__step *steps = w->path.steps.at;
    size_t last = w->path.steps.n - 1, i;

    if (w->on_path[steps[last].node] == 1)
        return false;
    for (i = 1; i < last; i++)
        if (steps[i].node == steps[last].node &&
            steps[i - 1].node == steps[last - 1].node)
            return true;
    return false;
}

/* Enter a node as it stands in `nodes`. There is room. */
static void
enter(struct walk *w, uint32_t what, uint32_t flags)
{
    uint32_t node = what & ~WATCHED;
    struct cpprof__step *step;
    uint64_t ends;

    if (what == LEFT_OUT) {
        w->over_inlined =
            (!w->over || w->over_inlined) && flags & CPPROF__STEP_INLINE;
        w->over = true;
        return;
    }
    if (w->over && w->g->view && !w->over_inlined)
        flags &= ~CPPROF__STEP_INLINE;
    if (w->over)
        flags |= CPPROF__STEP_OVER;
    w->over = false;
    step = &w->path.steps.at[w->path.steps.n++];
    *step = (struct cpprof__step){.node = node, .flags = flags};
    w->on_path[node]++;
    if (!(what & WATCHED) || w->path.steps.n == 1 || step[-1].node == node ||
        is_repeated(w))
        return;
    step->flags |= CPPROF__STEP_EDGE;
    ends = (uint64_t)step[-1].node << 32 | node;
    __builtin_prefetch(&w->places[place_of(w, ends)], 1);
}

/* Enter the nodes of a location, from the outermost function inwards. */
static void
enter_location(struct walk *w, uint32_t location)
{
    uint32_t what = w->locations[location];
    size_t first, last, i;

    if (what != SEVERAL) {
        enter(w, what, 0);
        return;
    }
    first = w->g->first_node[location];
    last = w->g->first_node[location + 1];
    for (i = last; i > first; i--)
        enter(w, w->nodes[w->g->location_nodes.at[i - 1]],
              i != last ? CPPROF__STEP_INLINE : 0);
}

/* Is the innermost node of a location left out? */
static bool
ends_left_out(const struct walk *w, uint32_t location)
{
    uint32_t what = w->locations[location];

    if (what == SEVERAL)
        what = w->nodes[w->g->location_nodes.at[w->g->first_node[location]]];
    return what == LEFT_OUT;
}

static bool
move_to(struct walk *w, const uint32_t *frames, size_t n)
{
    struct cpprof__path *path = &w->path;
    size_t shared = cpprof__path_shared(path, frames, n), i;

    if (!leave_until(w, cpprof__path_steps(path, shared)) ||
        !cpprof__path_begin(path, frames, n, shared))
        return false;
    w->over = shared && ends_left_out(w, frames[n - shared]);
    for (i = n - shared; i; i--) {
        if (!CPPROF__ARRAY_ROOM(&path->steps, w->g->most_nodes))
            return false;
        enter_location(w, frames[i - 1]);
        path->ends.at[path->ends.n++] = path->steps.n;
    }
    return true;
}

static bool
walk_all(struct walk *w)
{
    const struct cpprof_pprof *p = w->g->p;
    size_t i;

    for (i = 0; i < p->samples.n; i++) {
        const struct cpprof__sample *s = &p->samples.at[i];
        struct cpprof__step *leaf;
        int64_t value, divisor;

        value = cpprof__sample_value(w->g, i, &divisor);
        if (!value && !divisor)
            continue;
        if (!move_to(w, p->frames.at + s->first_frame, s->n_frames))
            return false;
        if (!w->path.steps.n)
            continue;
        leaf = &w->path.steps.at[w->path.steps.n - 1];
        leaf->sum = cpprof__add(leaf->sum, value);
        leaf->divisor_sum = cpprof__add(leaf->divisor_sum, divisor);
    }
    return leave_until(w, 0);
}

/* -------------------------------------------------------------- walk ---- */

static bool
walk_make(struct walk *w, const uint8_t *kept, const uint8_t *watched)
{
    const struct cpprof__graph *g = w->g;
    size_t i;

    w->path.frames = g->p->frames.at;
    w->nodes = malloc((g->nodes.n + 1) * sizeof *w->nodes);
    w->locations = malloc((g->p->locations.n + 1) * sizeof *w->locations);
    w->on_path = calloc(g->nodes.n + 1, sizeof *w->on_path);
    if (!w->nodes || !w->locations || !w->on_path || !grow(w))
        return false;
    for (i = 0; i < g->nodes.n; i++)
        w->nodes[i] =
            kept[i] ? (uint32_t)i | (watched[i] ? WATCHED : 0) : LEFT_OUT;
    for (i = 0; i < g->p->locations.n; i++)
        w->locations[i] = g->only_node[i] == CPPROF__NO_NODE
                              ? SEVERAL
                              : w->nodes[g->only_node[i]];
    return true;
}

static bool
to_edges(struct walk *w)
{
    struct cpprof__graph *g = w->g;
    size_t i;

    if (!CPPROF__ARRAY_ROOM(&g->edges, w->n_edges))
        return false;
    for (i = 0; i < w->n_places; i++) {
        const struct place *place = &w->places[i];

        if (place->ends == FREE)
            continue;
        g->edges.at[g->edges.n++] = (struct cpprof__edge){
            .from = (uint32_t)((place->ends & ~BITS) >> 32),
            .to = (uint32_t)place->ends,
            .is_inline = !(place->ends & OTHER),
            .is_residual = place->ends & OVER,
            .weight = place->weight,
            .divisor = w->divisors ? w->divisors[i] : 0,
        };
    }
    return true;
}

enum cpprof_status
cpprof__graph_add_edges(struct cpprof__graph *g, const uint8_t *kept,
                        const uint8_t *watched, struct cpprof_error *error)
{
    struct walk w = {.g = g};
    bool ok;

    if (g->nodes.n > MOST_NODES)
        return cpprof__fail(error, CPPROF_LIMIT, 0, "more than %zu nodes",
                            MOST_NODES);
    ok = walk_make(&w, kept, watched) && walk_all(&w) && to_edges(&w);
    cpprof__path_free(&w.path);
    free(w.nodes);
    free(w.locations);
    free(w.on_path);
    free(w.places);
    free(w.divisors);
    return ok ? CPPROF_OK : cpprof__fail_nomem(error);
}
