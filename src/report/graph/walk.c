/* SPDX-License-Identifier: MIT */
/*
 * Turns samples into the flat and cum values of nodes.
 *
 * Neighbouring samples mostly share their frames near the root. So this goes
 * from one stack to the next by leaving and entering only the frames in which
 * they differ. A node that a stack has more than once gets a sample once: a
 * node counts how often it is on the path, and what it gets is the difference
 * of the running total between its first entry and its last exit. So the order
 * in which frames are entered does not matter, and none waits for another.
 *
 * The walk touches one record for every frame that changes. These records are
 * small and lie together, and the nodes themselves are filled in at the end.
 */
#include "own/memory.h"
#include "report/graph.h"

#include "base/status.h"

#include <stdlib.h>

/* The state of a node during the walk. */
struct sum {
    int64_t cum;
    uint64_t on_path; /* how often it is there */
};

struct walk {
    struct cpprof__graph *g;
    const uint32_t *path; /* frames of the previous sample, leaf first */
    size_t n_path;
    /* What the samples so far add up to. A node that is entered with one sample
     * and left before another one gets the values of the samples in between:
     * the difference of the totals. */
    int64_t value, divisor;
    struct sum *sums;
    int64_t *flat;
    struct { /* only with a divisor */
        int64_t *flat, *cum;
    } divisors;
};

/* ------------------------------------------------------------ frames ---- */

/* The functions below enter frames if `entering`, else leave them. They are
 * inlined, so that none of them asks at run time. */

/* Take the running total away at the beginning, add it at the end. */
static inline __attribute__((always_inline)) void
count(int64_t *sum, int64_t running, bool entering)
{
    *sum =
        entering ? cpprof__subtract(*sum, running) : cpprof__add(*sum, running);
}

static inline __attribute__((always_inline)) void
pass_node(struct walk *w, uint32_t node, bool entering)
{
    struct sum *sum = &w->sums[node];

    if (entering ? sum->on_path++ : --sum->on_path)
        return;
    count(&sum->cum, w->value, entering);
    if (w->divisors.cum)
        count(&w->divisors.cum[node], w->divisor, entering);
}

/* The several nodes of a location. */
static inline __attribute__((always_inline)) void
pass_several(struct walk *w, uint32_t begin, bool entering)
{
    const uint32_t *node = w->g->several.at + begin;

    count(&w->g->several_sums[begin / 2], w->value, entering);
    for (; !(*node & CPPROF__OUTERMOST); node++)
        pass_node(w, *node, entering);
    pass_node(w, *node & ~CPPROF__OUTERMOST, entering);
}

static inline __attribute__((always_inline)) void
pass(struct walk *w, const uint32_t *frames, size_t n, bool entering)
{
    const uint32_t *only_node = w->g->only_node;
    size_t i;

    for (i = 0; i < n; i++) {
        uint32_t node = only_node[frames[i]];

        if (node & CPPROF__SEVERAL)
            pass_several(w, node & ~CPPROF__SEVERAL, entering);
        else
            pass_node(w, node, entering);
    }
}

static void
move_to(struct walk *w, const uint32_t *frames, size_t n, size_t shared)
{
    pass(w, w->path, w->n_path - shared, false);
    pass(w, frames, n - shared, true);
    w->path = frames;
    w->n_path = n;
}

/* ----------------------------------------------------------- samples ---- */

static void
walk_all(struct walk *w)
{
    const struct pprof_profile *p = w->g->p;
    size_t i;

    for (i = 0; i < p->samples.n; i++) {
        const struct cpprof__sample *s = &p->samples.at[i];
        const uint32_t *frames = p->frames.at + s->first_frame;
        int64_t value, divisor;
        uint32_t leaf;

        value = cpprof__sample_value(w->g, i, &divisor);
        if (value < 0)
            w->g->any_negative = true;
        if (!value && !divisor)
            continue;
        w->g->shared[i] = (uint32_t)cpprof__shared_frames(w->path, w->n_path,
                                                          frames, s->n_frames);
        move_to(w, frames, s->n_frames, w->g->shared[i]);
        if (!s->n_frames)
            continue;
        w->value = cpprof__add(w->value, value);
        w->divisor = cpprof__add(w->divisor, divisor);
        leaf = w->g->only_node[frames[0]];
        if (leaf & CPPROF__SEVERAL)
            leaf = w->g->several.at[leaf & ~CPPROF__SEVERAL];
        w->flat[leaf] = cpprof__add(w->flat[leaf], value);
        if (w->divisors.flat)
            w->divisors.flat[leaf] =
                cpprof__add(w->divisors.flat[leaf], divisor);
    }
    move_to(w, NULL, 0, 0);
}

/* -------------------------------------------------------------- walk ---- */

static bool
walk_make(struct walk *w)
{
    size_t n = w->g->nodes.n + 1;
    bool divide = w->g->divisor != CPPROF__NO_DIVISOR;

    w->sums = cpprof__calloc(n, sizeof *w->sums);
    w->flat = cpprof__calloc(n, sizeof *w->flat);
    cpprof__free(w->g->shared);
    w->g->shared =
        cpprof__malloc((w->g->p->samples.n + 1) * sizeof *w->g->shared);
    cpprof__free(w->g->several_sums);
    w->g->several_sums =
        cpprof__calloc(w->g->several.n / 2 + 1, sizeof *w->g->several_sums);
    if (divide) {
        w->divisors.flat = cpprof__calloc(n, sizeof *w->divisors.flat);
        w->divisors.cum = cpprof__calloc(n, sizeof *w->divisors.cum);
    }
    return w->sums && w->flat && w->g->shared && w->g->several_sums &&
           (!divide || (w->divisors.flat && w->divisors.cum));
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
    cpprof__free(w.sums);
    cpprof__free(w.flat);
    cpprof__free(w.divisors.flat);
    cpprof__free(w.divisors.cum);
    return ok ? CPPROF_OK : cpprof__fail_nomem(error);
}
