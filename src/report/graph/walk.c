/* SPDX-License-Identifier: MIT */
/*
 * Turns samples into the flat and cum values of nodes.
 *
 * Neighbouring samples mostly share their frames near the root. So this goes
 * from one stack to the next by leaving and entering only the frames in which
 * they differ (path.h). A node that a stack has more than once gets a sample
 * once: a node counts how often it is on the path, and what it gets is the
 * difference of the running total between its first entry and its last exit. So
 * the order in which frames are entered does not matter, and none waits for
 * another.
 *
 * The walk touches one record for every frame that changes. These records are
 * small and lie together, and the nodes themselves are filled in at the end.
 */
#include "report/graph/path.h"

#include "base/status.h"

#include <stdlib.h>

/* What there is of a node while walking. */
struct sum {
    int64_t cum;
    uint64_t on_path; /* how often it is there */
};

struct walk {
    struct cpprof__graph *g;
    struct cpprof__path path;
    struct cpprof__running running;
    struct sum *sums;
    int64_t *flat;
    struct { /* only with a divisor */
        int64_t *flat, *cum;
    } divisors;
};

/* ------------------------------------------------------------ frames ---- */

static inline void
enter_node(struct walk *w, uint32_t node)
{
    struct sum *sum = &w->sums[node];

    if (sum->on_path++)
        return;
    sum->cum = cpprof__subtract(sum->cum, w->running.value);
    if (w->divisors.cum)
        w->divisors.cum[node] =
            cpprof__subtract(w->divisors.cum[node], w->running.divisor);
}

static inline void
leave_node(struct walk *w, uint32_t node)
{
    struct sum *sum = &w->sums[node];

    if (--sum->on_path)
        return;
    sum->cum = cpprof__add(sum->cum, w->running.value);
    if (w->divisors.cum)
        w->divisors.cum[node] =
            cpprof__add(w->divisors.cum[node], w->running.divisor);
}

/* The several nodes of a location. */

static void
enter_several(struct walk *w, uint32_t begin)
{
    const uint32_t *node = w->g->several.at + begin;
    int64_t *sum = &w->g->several_sums[begin / 2];

    *sum = cpprof__subtract(*sum, w->running.value);
    for (; !(*node & CPPROF__OUTERMOST); node++)
        enter_node(w, *node);
    enter_node(w, *node & ~CPPROF__OUTERMOST);
}

static void
leave_several(struct walk *w, uint32_t begin)
{
    const uint32_t *node = w->g->several.at + begin;
    int64_t *sum = &w->g->several_sums[begin / 2];

    *sum = cpprof__add(*sum, w->running.value);
    for (; !(*node & CPPROF__OUTERMOST); node++)
        leave_node(w, *node);
    leave_node(w, *node & ~CPPROF__OUTERMOST);
}

static void
enter(struct walk *w, const uint32_t *frames, size_t n)
{
    const uint32_t *only_node = w->g->only_node;
    size_t i;

    for (i = 0; i < n; i++) {
        uint32_t node = only_node[frames[i]];

        if (node & CPPROF__SEVERAL)
            enter_several(w, node & ~CPPROF__SEVERAL);
        else
            enter_node(w, node);
    }
}

static void
leave(struct walk *w, const uint32_t *frames, size_t n)
{
    const uint32_t *only_node = w->g->only_node;
    size_t i;

    for (i = 0; i < n; i++) {
        uint32_t node = only_node[frames[i]];

        if (node & CPPROF__SEVERAL)
            leave_several(w, node & ~CPPROF__SEVERAL);
        else
            leave_node(w, node);
    }
}

static void
move_to(struct walk *w, const uint32_t *frames, size_t n, size_t shared)
{
    leave(w, w->path.frames, w->path.n_frames - shared);
    enter(w, frames, n - shared);
    w->path = (struct cpprof__path){frames, n};
}

/* ----------------------------------------------------------- samples ---- */

static void
add_leaf(struct walk *w, uint32_t location, int64_t value, int64_t divisor)
{
    uint32_t leaf = w->g->only_node[location];

    if (leaf & CPPROF__SEVERAL)
        leaf = w->g->several.at[leaf & ~CPPROF__SEVERAL];
    w->flat[leaf] = cpprof__add(w->flat[leaf], value);
    if (w->divisors.flat)
        w->divisors.flat[leaf] = cpprof__add(w->divisors.flat[leaf], divisor);
}

static void
walk_all(struct walk *w)
{
    const struct pprof_profile *p = w->g->p;
    size_t i;

    for (i = 0; i < p->samples.n; i++) {
        const struct cpprof__sample *s = &p->samples.at[i];
        const uint32_t *frames = p->frames.at + s->first_frame;
        int64_t value, divisor;

        value = cpprof__sample_value(w->g, i, &divisor);
        if (value < 0)
            w->g->any_negative = true;
        if (!value && !divisor)
            continue;
        w->g->shared[i] =
            (uint32_t)cpprof__path_shared(&w->path, frames, s->n_frames);
        move_to(w, frames, s->n_frames, w->g->shared[i]);
        if (!s->n_frames)
            continue;
        cpprof__running_add(&w->running, value, divisor);
        add_leaf(w, frames[0], value, divisor);
    }
    move_to(w, NULL, 0, 0);
}

/* -------------------------------------------------------------- walk ---- */

static bool
walk_make(struct walk *w)
{
    size_t n = w->g->nodes.n + 1;
    bool divide = w->g->divisor != CPPROF__NO_DIVISOR;

    w->sums = calloc(n, sizeof *w->sums);
    w->flat = calloc(n, sizeof *w->flat);
    free(w->g->shared);
    w->g->shared = malloc((w->g->p->samples.n + 1) * sizeof *w->g->shared);
    free(w->g->several_sums);
    w->g->several_sums =
        calloc(w->g->several.n / 2 + 1, sizeof *w->g->several_sums);
    if (divide) {
        w->divisors.flat = calloc(n, sizeof *w->divisors.flat);
        w->divisors.cum = calloc(n, sizeof *w->divisors.cum);
    }
    return w->sums && w->flat && w->g->shared && w->g->several_sums &&
           (!divide || (w->divisors.flat && w->divisors.cum));
}

static void
walk_free(struct walk *w)
{
    free(w->sums);
    free(w->flat);
    free(w->divisors.flat);
    free(w->divisors.cum);
}

static void
to_nodes(const struct walk *w)
{
    size_t i;

    for (i = 0; i < w->g->nodes.n; i++) {
        struct cpprof__node *node = &w->g->nodes.at[i];

        node->flat = w->flat[i];
        node->cum = w->sums[i].cum;
        if (w->divisors.cum) {
            node->flat_div = w->divisors.flat[i];
            node->cum_div = w->divisors.cum[i];
        }
    }
}

enum cpprof_status
cpprof__graph_add_values(struct cpprof__graph *g, struct cpprof_error *error)
{
    struct walk w = {.g = g};
    bool ok = walk_make(&w);

    if (ok) {
        walk_all(&w);
        to_nodes(&w);
    }
    walk_free(&w);
    return ok ? CPPROF_OK : cpprof__fail_nomem(error);
}
