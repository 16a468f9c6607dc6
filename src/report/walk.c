/* SPDX-License-Identifier: MIT */
/*
 * Samples into nodes: flat and cum.
 *
 * A node that a stack has more than once gets a sample once: only the step
 * nearest to the root counts for it.
 *
 * This touches a node for every frame of a profile, so what it touches is
 * small, lies together, and is asked for before it is needed; the nodes
 * themselves are filled in at the end.
 */
#include "report/path.h"

#include "base/status.h"

#include <stdlib.h>

/* What there is of a node while walking. */
struct sum {
    int64_t cum;
    uint32_t on_path; /* how many steps it has */
};

struct walk {
    struct cpprof__graph *g;
    struct cpprof__path path;
    struct sum *sums;
    int64_t *flat;
    int64_t *inlined;
    struct { /* only with a divisor */
        int64_t *flat, *cum;
    } divisors;
};

/* ------------------------------------------------------------- steps ---- */

static void
leave(struct walk *w)
{
    struct cpprof__step *step = &w->path.steps.at[--w->path.steps.n];
    struct sum *sum = &w->sums[step->node];

    sum->on_path--;
    if (step->flags & CPPROF__STEP_FIRST)
        sum->cum = cpprof__add(sum->cum, step->sum);
    if (step->flags & CPPROF__STEP_INLINE)
        w->inlined[step->node] = cpprof__add(w->inlined[step->node], step->sum);
    if (w->path.steps.n)
        step[-1].sum = cpprof__add(step[-1].sum, step->sum);
    if (!w->divisors.cum)
        return;
    if (step->flags & CPPROF__STEP_FIRST)
        w->divisors.cum[step->node] =
            cpprof__add(w->divisors.cum[step->node], step->divisor_sum);
    if (w->path.steps.n)
        step[-1].divisor_sum =
            cpprof__add(step[-1].divisor_sum, step->divisor_sum);
}

static void
leave_until(struct walk *w, size_t n_steps)
{
    while (w->path.steps.n > n_steps)
        leave(w);
}

/* Put a node on the path, without looking at it yet. There is room. */
static void
plan(struct walk *w, uint32_t node, uint32_t flags)
{
    __builtin_prefetch(&w->sums[node], 1);
    w->path.steps.at[w->path.steps.n++] =
        (struct cpprof__step){.node = node, .flags = flags};
}

/* Plan the nodes of a location, from the outermost function inwards. */
static void
plan_location(struct walk *w, uint32_t location)
{
    const uint32_t *nodes = w->g->location_nodes.at;
    uint32_t only = w->g->only_node[location];
    size_t first, last, i;

    if (only != CPPROF__NO_NODE) {
        plan(w, only, 0);
        return;
    }
    first = w->g->first_node[location];
    last = w->g->first_node[location + 1];
    for (i = last; i > first; i--)
        plan(w, nodes[i - 1], i != last ? CPPROF__STEP_INLINE : 0);
}

/* Enter what is planned. */
static void
enter_from(struct walk *w, size_t n_steps)
{
    for (; n_steps < w->path.steps.n; n_steps++) {
        struct cpprof__step *step = &w->path.steps.at[n_steps];

        if (w->sums[step->node].on_path++ == 0)
            step->flags |= CPPROF__STEP_FIRST;
    }
}

static bool
move_to(struct walk *w, const uint32_t *frames, size_t n)
{
    struct cpprof__path *path = &w->path;
    size_t shared = cpprof__path_shared(path, frames, n), i;
    size_t n_steps = cpprof__path_steps(path, shared);

    leave_until(w, n_steps);
    if (!cpprof__path_begin(path, frames, n, shared))
        return false;
    for (i = n - shared; i; i--) {
        if (!CPPROF__ARRAY_ROOM(&path->steps, w->g->most_nodes))
            return false;
        plan_location(w, frames[i - 1]);
        path->ends.at[path->ends.n++] = path->steps.n;
    }
    enter_from(w, n_steps);
    return true;
}

static bool
add_sample(struct walk *w, size_t sample)
{
    const struct cpprof__sample *s = &w->g->p->samples.at[sample];
    struct cpprof__step *leaf;
    int64_t value, divisor;

    value = cpprof__sample_value(w->g, sample, &divisor);
    if (value < 0)
        w->g->any_negative = true;
    if (!value && !divisor)
        return true;
    if (!move_to(w, w->g->p->frames.at + s->first_frame, s->n_frames))
        return false;
    if (!w->path.steps.n)
        return true;
    leaf = &w->path.steps.at[w->path.steps.n - 1];
    leaf->sum = cpprof__add(leaf->sum, value);
    leaf->divisor_sum = cpprof__add(leaf->divisor_sum, divisor);
    w->flat[leaf->node] = cpprof__add(w->flat[leaf->node], value);
    if (w->divisors.flat)
        w->divisors.flat[leaf->node] =
            cpprof__add(w->divisors.flat[leaf->node], divisor);
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
walk_make(struct walk *w)
{
    size_t n = w->g->nodes.n + 1;
    bool divide = w->g->divisor != CPPROF__NO_DIVISOR;

    w->path.frames = w->g->p->frames.at;
    w->sums = calloc(n, sizeof *w->sums);
    w->flat = calloc(n, sizeof *w->flat);
    w->inlined = calloc(n, sizeof *w->inlined);
    if (divide) {
        w->divisors.flat = calloc(n, sizeof *w->divisors.flat);
        w->divisors.cum = calloc(n, sizeof *w->divisors.cum);
    }
    return w->sums && w->flat && w->inlined &&
           (!divide || (w->divisors.flat && w->divisors.cum));
}

static void
walk_free(struct walk *w)
{
    cpprof__path_free(&w->path);
    free(w->sums);
    free(w->flat);
    free(w->inlined);
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
        node->inlined = w->inlined[i];
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
    bool ok = walk_make(&w) && walk_all(&w);

    if (ok)
        to_nodes(&w);
    walk_free(&w);
    return ok ? CPPROF_OK : cpprof__fail_nomem(error);
}
