/* SPDX-License-Identifier: MIT */
/*
 * From the tree to numbers: what each key has in each run, by itself and with
 * all that it called, for the work that was done. A function that stands in a
 * stack twice counts once.
 */
#include "cli/gate/gate.h"

#include "base/status.h"

#include <stdlib.h>

/* The node that a node counts as, when keys are folded. */
static uint32_t
unfolded(const struct cpprof__gate_model *m, uint32_t node)
{
    uint32_t at = node;

    while (at != CPPROF__GATE_NONE &&
           m->keys.at[m->keys.at[m->nodes.at[at].key].is].is_folded)
        at = m->nodes.at[at].parent;
    return at == CPPROF__GATE_NONE ? node : at;
}

/* Per key the entry that counted it last. */
struct counter {
    const struct cpprof__gate_model *m;
    struct cpprof__gate_values *v;
    uint32_t *seen;
    uint32_t stamp;
};

static uint32_t
key_at(const struct cpprof__gate_model *m, uint32_t node)
{
    return m->keys.at[m->nodes.at[node].key].is;
}

static void
count_entry(struct counter *c, const struct cpprof__gate_entry *e, size_t run,
            double by)
{
    const struct cpprof__gate_model *m = c->m;
    uint32_t node = unfolded(m, e->node), k;
    double value = e->value * by;

    c->stamp++;
    c->v->flat[key_at(m, node) * c->v->n_runs + run] += value;
    for (; node != CPPROF__GATE_NONE; node = m->nodes.at[node].parent) {
        k = key_at(m, node);
        if (m->keys.at[k].is_folded || c->seen[k] == c->stamp)
            continue;
        c->seen[k] = c->stamp;
        c->v->cum[k * c->v->n_runs + run] += value;
    }
}

/* Means of a run in each node, with all below it. */
static void
count_nodes(struct cpprof__gate_model *m)
{
    size_t i, k;

    for (i = 0; i < m->nodes.n; i++)
        m->nodes.at[i].base = m->nodes.at[i].head = 0;
    for (k = 0; k < m->runs.n; k++) {
        const struct cpprof__gate_run *run = &m->runs.at[k];
        double by =
            1 / run->work / (double)(run->is_head ? m->n_head : m->n_base);

        for (i = 0; i < run->entries.n; i++) {
            struct cpprof__gate_node *n = &m->nodes.at[run->entries.at[i].node];

            *(run->is_head ? &n->head : &n->base) +=
                run->entries.at[i].value * by;
        }
    }
    for (i = m->nodes.n; i-- > 0;) {
        const struct cpprof__gate_node *n = &m->nodes.at[i];

        if (n->parent == CPPROF__GATE_NONE)
            continue;
        m->nodes.at[n->parent].base += n->base;
        m->nodes.at[n->parent].head += n->head;
    }
}

enum cpprof_status
cpprof__gate_count(struct cpprof__gate_model *m, struct cpprof__gate_values *v,
                   struct cpprof_error *error)
{
    struct counter c = {.m = m, .v = v};
    size_t i, k, n = m->keys.n * m->runs.n + 1;

    cpprof__gate_values_free(v);
    v->n_keys = m->keys.n;
    v->n_runs = m->runs.n;
    v->flat = calloc(n, sizeof *v->flat);
    v->cum = calloc(n, sizeof *v->cum);
    c.seen = calloc(m->keys.n + 1, sizeof *c.seen);
    for (k = 0; v->flat && v->cum && c.seen && k < m->runs.n; k++) {
        const struct cpprof__gate_run *run = &m->runs.at[k];

        for (i = 0; i < run->entries.n; i++)
            count_entry(&c, &run->entries.at[i], k, 1 / run->work);
    }
    free(c.seen);
    if (!v->flat || !v->cum || !c.seen)
        return cpprof__fail_nomem(error);
    count_nodes(m);
    return CPPROF_OK;
}

void
cpprof__gate_values_free(struct cpprof__gate_values *v)
{
    free(v->flat);
    free(v->cum);
    *v = (struct cpprof__gate_values){0};
}
