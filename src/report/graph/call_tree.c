/* SPDX-License-Identifier: MIT */
/*
 * Turns a graph into a tree. Walks over a graph go from samples over their
 * locations to nodes. So the tree gets new locations, one for each pair of a
 * location and the node that it is called from, and a copy of the samples'
 * frames that refers to them. After that every walk sees a tree.
 *
 * The reference takes nodes out of a tree by hanging their children on their
 * parents. Leaving them out on the way, as is done for graphs, comes to the
 * same: an edge's value is that of all samples through its child.
 */
#include "own/memory.h"
#include "report/graph.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

struct planter {
    struct cpprof__graph *g;   /* with the nodes of the graph */
    struct cpprof__graph tree; /* what becomes of it */
    /* Of the tree: a location, or a node, of the graph below a node of the
     * tree; CPPROF__NO_NODE: at a root. */
    struct cpprof__table locations, nodes;
    CPPROF__ARRAY(size_t) ends; /* of each location in tree.location_nodes */
    uint32_t *frames;           /* as p->frames, of positions in the tree */
    uint32_t *origins; /* by node of the graph: the first one of the tree */
};

/* -------------------------------------------------------------- tree ---- */

/* The node of the tree for one of the graph. */
static uint32_t
tree_node(struct planter *p, uint32_t parent, uint32_t node)
{
    struct cpprof__graph *tree = &p->tree;
    size_t n = cpprof__keys_count(&p->nodes);
    uint32_t at = cpprof__keys_number(&p->nodes, parent, node, 0);

    if (at < n || at == CPPROF__NO_NODE)
        return at;
    if (!CPPROF__ARRAY_ROOM(&tree->nodes, 1))
        return CPPROF__NO_NODE;
    if (p->origins[node] == CPPROF__NO_NODE)
        p->origins[node] = at;
    tree->nodes.at[tree->nodes.n] = p->g->nodes.at[node];
    tree->nodes.at[tree->nodes.n].origin = p->origins[node];
    tree->nodes.at[tree->nodes.n++].context = parent + 1;
    return at;
}

/* Give a new location its nodes, innermost first. */
static bool
add_nodes(struct planter *p, uint32_t parent, uint32_t location)
{
    const struct cpprof__graph *g = p->g;
    struct cpprof__graph *tree = &p->tree;
    size_t n = g->first_node[location + 1] - g->first_node[location], i;
    uint32_t *nodes;

    if (!CPPROF__ARRAY_ROOM(&tree->location_nodes, n) ||
        !CPPROF__ARRAY_ROOM(&p->ends, 1))
        return false;
    nodes = tree->location_nodes.at + tree->location_nodes.n;
    for (i = n; i; i--) {
        parent = tree_node(
            p, parent, g->location_nodes.at[g->first_node[location] + i - 1]);
        if (parent == CPPROF__NO_NODE)
            return false;
        nodes[i - 1] = parent;
    }
    tree->location_nodes.n += n;
    p->ends.at[p->ends.n++] = tree->location_nodes.n;
    return true;
}

/* The innermost node of a location of the tree. */
static uint32_t
innermost(const struct planter *p, uint32_t location)
{
    return p->tree.location_nodes
        .at[location ? p->ends.at[location - 1] : (size_t)0];
}

/* Fill in a sample's frames, but the `shared` ones nearest to the root, which
 * are those of the sample before. */
static bool
plant(struct planter *p, const struct cpprof__sample *s,
      const struct cpprof__sample *before, size_t shared)
{
    const uint32_t *from = p->g->p->frames.at + s->first_frame;
    uint32_t *to = p->frames + s->first_frame, parent = CPPROF__NO_NODE;
    size_t i;

    if (shared) {
        memcpy(to + s->n_frames - shared,
               p->frames + before->first_frame + before->n_frames - shared,
               shared * sizeof *to);
        parent = innermost(p, to[s->n_frames - shared]);
    }
    for (i = s->n_frames - shared; i; i--) {
        size_t n = cpprof__keys_count(&p->locations);
        uint32_t at =
            cpprof__keys_number(&p->locations, parent, from[i - 1], 0);

        if (at == CPPROF__INDEX_NONE ||
            (at == n && !add_nodes(p, parent, from[i - 1])))
            return false;
        to[i - 1] = at;
        parent = innermost(p, at);
    }
    return true;
}

static bool
counts(const struct cpprof__graph *g, size_t sample)
{
    const int64_t *values = cpprof__values(g->p, sample);

    return values[g->value] ||
           (g->divisor != CPPROF__NO_DIVISOR && values[g->divisor]);
}

static bool
plant_all(struct planter *p)
{
    const struct pprof_profile *profile = p->g->p;
    const struct cpprof__sample *before = NULL;
    const uint32_t *frames = profile->frames.at;
    size_t shared, i;

    for (i = 0; i < profile->samples.n; i++) {
        const struct cpprof__sample *s = &profile->samples.at[i];

        if (!counts(p->g, i))
            continue;
        shared = before ? cpprof__shared_frames(
                              frames + s->first_frame, s->n_frames,
                              frames + before->first_frame, before->n_frames)
                        : 0;
        if (!plant(p, s, before, shared))
            return false;
        before = s;
    }
    return true;
}

/* -------------------------------------------------------------- view ---- */

/* What walks over the tree see as the profile. Samples that count for nothing
 * have frames of no position: they are given none, so that nobody looks. */
static bool
make_view(struct planter *p)
{
    struct pprof_profile *view = cpprof__malloc(sizeof *view);
    const struct pprof_profile *of = p->g->p;
    struct cpprof__sample *samples;
    size_t n = cpprof__keys_count(&p->locations), i;

    p->tree.first_node = cpprof__malloc((n + 1) * sizeof *p->tree.first_node);
    samples = cpprof__malloc((of->samples.n + 1) * sizeof *samples);
    if (!view || !samples || !p->tree.first_node) {
        cpprof__free(view);
        cpprof__free(samples);
        return false;
    }
    for (i = 0; i < n; i++)
        p->tree.first_node[i] = i ? p->ends.at[i - 1] : 0;
    *view = *of;
    for (i = 0; i < of->samples.n; i++) {
        samples[i] = of->samples.at[i];
        if (!counts(p->g, i))
            samples[i].n_frames = 0;
    }
    view->samples.at = samples;
    view->frames.at = p->frames;
    view->locations.n = n;
    p->frames = NULL;
    p->tree.p = p->tree.view = view;
    return true;
}

enum cpprof_status
cpprof__call_tree(struct cpprof__graph *g, struct cpprof_error *error)
{
    struct planter p = {.g = g};
    struct cpprof__graph old = *g;
    enum cpprof_status status = CPPROF_OK;

    p.tree.value = g->value;
    p.tree.divisor = g->divisor;
    p.frames = cpprof__malloc((g->p->frames.n + 1) * sizeof *p.frames);
    p.origins = cpprof__malloc((g->nodes.n + 1) * sizeof *p.origins);
    if (p.origins)
        memset(p.origins, 0xff, g->nodes.n * sizeof *p.origins);
    if (!p.frames || !p.origins || !plant_all(&p) || !make_view(&p))
        status = cpprof__fail_nomem(error);
    if (status == CPPROF_OK)
        status = cpprof__graph_index(&p.tree, error);
    if (status == CPPROF_OK) {
        *g = p.tree;
        p.tree = old;
    }
    cpprof__table_free(&p.locations);
    cpprof__table_free(&p.nodes);
    CPPROF__ARRAY_FREE(&p.ends);
    cpprof__free(p.frames);
    cpprof__free(p.origins);
    cpprof__graph_free(&p.tree);
    return status;
}
