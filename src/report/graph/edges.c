/* SPDX-License-Identifier: MIT */
/*
 * Turns samples into edges: by which callers a node is called, and whether all
 * of those calls were inlined.
 *
 * This goes from stack to stack as walk.c does, over edges instead of nodes;
 * but frames are entered from the root on, because callers must be known. An
 * edge that a stack has more than once gets a sample once; the call nearest to
 * the root tells whether it was inlined.
 *
 * Nobody needs the edges of most locations. Such a location costs one byte to
 * read and one level to write. The edges of the others are listed first, which
 * prefetches their slots, and then looked up.
 */
#include "own/memory.h"
#include "report/graph.h"

#include "base/status.h"

#include <stdlib.h>

/* Open addressing; a power of two of slots, at most three quarters in use. */
struct slot {
    uint64_t ends; /* from << 32 | to, and bits; FREE: nothing here */
    int64_t weight;
    int64_t divisor;
    uint64_t on_path; /* how often it is there */
};

/* No edge leads from a node to itself. */
#define FREE  0
#define OTHER (1ULL << 63) /* some call along it was not inlined */
#define OVER  (1ULL << 62) /* some call along it went over others */
#define BITS  (OTHER | OVER)

/* The class of a node; a location has the highest class of its nodes. */
enum {
    LEFT_OUT,
    KEPT,
    WATCHED, /* edges into it are wanted */
};

/* An edge on the path. */
struct step {
    uint64_t edge; /* ends and bits */
    size_t slot;
};

/* A frame of the path. */
struct level {
    uint32_t kept;  /* the last location up to here that has a node that is
                     * kept; NO_NODE: none */
    uint32_t last;  /* this location */
    size_t n_steps; /* up to here */
};

struct walk {
    struct cpprof__graph *g;
    uint8_t *nodes;     /* by node: LEFT_OUT, KEPT, WATCHED */
    uint8_t *locations; /* by location, the same */
    struct slot *slots;
    size_t n_slots, n_edges;

    int64_t value, divisor; /* what the samples so far add up to, as there */
    CPPROF__ARRAY(struct level) levels; /* of the path, from the root */
    CPPROF__ARRAY(struct step) steps;
};

/* The caller of the next frame of a stack. */
struct caller {
    uint32_t node;     /* the last one that is kept, or NO_NODE */
    bool over;         /* others since then are left out */
    bool over_inlined; /* and all of them were inlined */
};

/* ------------------------------------------------------------- table ---- */

static size_t
slot_of(const struct walk *w, uint64_t ends)
{
    return cpprof__hash_u64(ends) & (w->n_slots - 1);
}

static size_t
find(const struct walk *w, uint64_t ends)
{
    size_t i = slot_of(w, ends);

    while (w->slots[i].ends != FREE && (w->slots[i].ends & ~BITS) != ends)
        i = (i + 1) & (w->n_slots - 1);
    return i;
}

/* Double the table. Steps that are looked up already are so again. */
static bool
grow(struct walk *w, size_t n_looked_up)
{
    struct walk old = *w;
    size_t n = w->n_slots ? w->n_slots * 2 : 1024, i;

    w->slots = cpprof__calloc(n, sizeof *w->slots);
    if (!w->slots) {
        w->slots = old.slots;
        return false;
    }
    w->n_slots = n;
    for (i = 0; i < old.n_slots; i++)
        if (old.slots[i].ends != FREE)
            w->slots[find(w, old.slots[i].ends & ~BITS)] = old.slots[i];
    for (i = 0; i < n_looked_up; i++)
        w->steps.at[i].slot = find(w, w->steps.at[i].edge & ~BITS);
    cpprof__free(old.slots);
    return true;
}

/* ------------------------------------------------------------- steps ---- */

static void
leave_until(struct walk *w, size_t n_steps)
{
    while (w->steps.n > n_steps) {
        struct slot *p = &w->slots[w->steps.at[--w->steps.n].slot];

        if (--p->on_path)
            continue;
        p->weight = cpprof__add(p->weight, w->value);
        p->divisor = cpprof__add(p->divisor, w->divisor);
    }
}

/* Look up the steps from n_steps on. */
static bool
enter_from(struct walk *w, size_t n_steps)
{
    for (; n_steps < w->steps.n; n_steps++) {
        struct step *step = &w->steps.at[n_steps];
        struct slot *p;

        if (w->n_edges >= w->n_slots / 4 * 3 && !grow(w, n_steps))
            return false;
        step->slot = find(w, step->edge & ~BITS);
        p = &w->slots[step->slot];
        w->n_edges += p->ends == FREE;
        if (p->on_path++)
            continue;
        p->ends |= step->edge;
        p->weight = cpprof__subtract(p->weight, w->value);
        p->divisor = cpprof__subtract(p->divisor, w->divisor);
    }
    return true;
}

/* ------------------------------------------------------------- nodes ---- */

/* Is an edge into a node that is watched to be counted? */
static inline bool
is_wanted(const struct walk *w, uint32_t from, uint32_t to)
{
    const uint8_t *only = w->g->only_ends;

    return from != CPPROF__NO_NODE && from != to &&
           (!only || only[from] || only[to]);
}

/* Go on to a node. There is room for its edge. */
static inline void
enter_node(struct walk *w, struct caller *caller, uint32_t node, bool is_inline)
{
    uint64_t ends = (uint64_t)caller->node << 32 | node;

    if (w->nodes[node] == LEFT_OUT) {
        caller->over_inlined =
            (!caller->over || caller->over_inlined) && is_inline;
        caller->over = true;
        return;
    }
    if (w->nodes[node] == WATCHED && is_wanted(w, caller->node, node)) {
        __builtin_prefetch(&w->slots[slot_of(w, ends)], 1);
        if (caller->over && w->g->view && !caller->over_inlined)
            is_inline = false;
        w->steps.at[w->steps.n++].edge =
            ends | (is_inline ? 0 : OTHER) | (caller->over ? OVER : 0);
    }
    caller->node = node;
    caller->over = false;
}

/* Behind a level: its last node that is kept. Inner ones of its location may
 * be left out, and they are inlined; a location after it is left out whole,
 * and its outermost node is not. */
static struct caller
caller_behind(const struct walk *w, const struct level *level)
{
    const struct cpprof__graph *g = w->g;
    struct caller caller = {level->kept, false, false};
    size_t i;

    if (level->kept == CPPROF__NO_NODE)
        return caller;
    caller.node = g->only_node[level->kept];
    if (caller.node & CPPROF__SEVERAL) {
        for (i = caller.node & ~CPPROF__SEVERAL;
             w->nodes[g->several.at[i] & ~CPPROF__OUTERMOST] == LEFT_OUT; i++)
            caller.over = true;
        caller.node = g->several.at[i] & ~CPPROF__OUTERMOST;
    }
    caller.over_inlined = caller.over;
    if (level->last != level->kept) {
        caller.over = true;
        caller.over_inlined = false;
    }
    return caller;
}

/* List the edges of a location, from the outermost function inwards. */
static bool
enter_location(struct walk *w, const struct level *before, uint32_t location)
{
    const uint32_t only = w->g->only_node[location], *first, *node;
    struct caller caller = caller_behind(w, before);

    if (!CPPROF__ARRAY_ROOM(&w->steps, w->g->most_nodes))
        return false;
    if (!(only & CPPROF__SEVERAL)) {
        enter_node(w, &caller, only, false);
        return true;
    }
    first = node = w->g->several.at + (only & ~CPPROF__SEVERAL);
    while (!(*node & CPPROF__OUTERMOST))
        node++;
    enter_node(w, &caller, *node & ~CPPROF__OUTERMOST, false);
    while (node > first)
        enter_node(w, &caller, *--node, true);
    return true;
}

/* ----------------------------------------------------------- samples ---- */

static bool
move_to(struct walk *w, const uint32_t *frames, size_t n, size_t shared)
{
    size_t n_steps, i;
    struct level level = {CPPROF__NO_NODE, CPPROF__NO_NODE, 0};

    if (!CPPROF__ARRAY_ROOM(&w->levels, n))
        return false;
    if (shared)
        level = w->levels.at[shared - 1];
    leave_until(w, level.n_steps);
    n_steps = w->steps.n;
    for (i = shared; i < n; i++) {
        uint32_t location = frames[n - 1 - i];
        uint8_t what = w->locations[location];

        if (what == WATCHED && !enter_location(w, &level, location))
            return false;
        level.kept = what ? location : level.kept;
        level.last = location;
        level.n_steps = w->steps.n;
        w->levels.at[i] = level;
    }
    return enter_from(w, n_steps);
}

static bool
walk_all(struct walk *w)
{
    const struct pprof_profile *p = w->g->p;
    size_t i;

    for (i = 0; i < p->samples.n; i++) {
        const struct cpprof__sample *s = &p->samples.at[i];
        int64_t value, divisor;

        value = cpprof__sample_value(w->g, i, &divisor);
        if (!value && !divisor)
            continue;
        if (!move_to(w, p->frames.at + s->first_frame, s->n_frames,
                     w->g->shared[i]))
            return false;
        w->value = cpprof__add(w->value, value);
        w->divisor = cpprof__add(w->divisor, divisor);
    }
    leave_until(w, 0);
    return true;
}

/* -------------------------------------------------------------- walk ---- */

static bool
walk_make(struct walk *w, const uint8_t *kept, const uint8_t *watched)
{
    const struct cpprof__graph *g = w->g;
    size_t i, k;

    w->nodes = cpprof__malloc(g->nodes.n + 1);
    w->locations = cpprof__malloc(g->p->locations.n + 1);
    if (!w->nodes || !w->locations || !grow(w, 0))
        return false;
    for (i = 0; i < g->nodes.n; i++)
        w->nodes[i] = !kept[i] ? LEFT_OUT : watched[i] ? WATCHED : KEPT;
    for (i = 0; i < g->p->locations.n; i++) {
        w->locations[i] = LEFT_OUT;
        for (k = g->first_node[i]; k < g->first_node[i + 1]; k++) {
            uint8_t class = w->nodes[g->location_nodes.at[k]];

            if (class > w->locations[i])
                w->locations[i] = class;
        }
    }
    return true;
}

static bool
to_edges(struct walk *w)
{
    struct cpprof__graph *g = w->g;
    size_t i;

    if (!CPPROF__ARRAY_ROOM(&g->edges, w->n_edges))
        return false;
    for (i = 0; i < w->n_slots; i++) {
        const struct slot *slot = &w->slots[i];

        if (slot->ends == FREE)
            continue;
        g->edges.at[g->edges.n++] = (struct cpprof__edge){
            .from = (uint32_t)((slot->ends & ~BITS) >> 32),
            .to = (uint32_t)slot->ends,
            .is_inline = !(slot->ends & OTHER),
            .is_residual = slot->ends & OVER,
            .weight = slot->weight,
            .divisor = slot->divisor,
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

    ok = walk_make(&w, kept, watched) && walk_all(&w) && to_edges(&w);
    cpprof__free(w.nodes);
    cpprof__free(w.locations);
    cpprof__free(w.slots);
    CPPROF__ARRAY_FREE(&w.levels);
    CPPROF__ARRAY_FREE(&w.steps);
    return ok ? CPPROF_OK : cpprof__fail_nomem(error);
}
