/* SPDX-License-Identifier: MIT */
/*
 * Functions that only one side has. Names were compared already. Of the others,
 * one that went and one that came are the same function under a new name where
 * callers, callees and size are alike. What is left was inlined, split off, or
 * is new: it counts as a part of its callers in both sides, so code that only
 * moved is no growth, and new work is growth of who calls it.
 */
#include "cli/gate/gate.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>

/* Smaller functions are missing in a side by chance. Parts of the whole. */
#define LEAST_SHARE 0.003
/* How alike the neighbours of a renamed function are, from 0 to 1. More: fewer
 * renamed functions are found, and fewer strangers taken for one. */
#define LEAST_ALIKE 0.7
/* Sizes of a renamed function, the larger by the smaller; the second of one
 * that calls nothing, of which less is known. */
#define MOST_RATIO      2.0
#define MOST_LEAF_RATIO 1.5
/* Of each side the largest are looked at: pairs are their product. */
#define MOST_CANDIDATES 200
/* A renamed function's neighbours may be renamed: each pass finds more. */
#define MOST_PASSES 4

/* Who is beside a function, and how much of its time they share. */
struct neighbour {
    uint32_t key;
    double weight;
};

struct candidate {
    uint32_t key;
    double size;
    CPPROF__ARRAY(struct neighbour) callers, callees;
};

typedef CPPROF__ARRAY(struct neighbour) neighbours;

struct matcher {
    struct cpprof__gate_model *m;
    CPPROF__ARRAY(struct candidate) gone, new;
    uint32_t *candidate_of; /* by key: index + 1, in gone or new */
    bool failed;
};

/* ----------------------------------------------------------- neighbours ----
 */

static bool
add_neighbour(void *list, uint32_t key, double weight)
{
    neighbours *l = list;
    struct neighbour *n;
    size_t i;

    for (i = 0; i < l->n; i++)
        if (l->at[i].key == key) {
            l->at[i].weight += weight;
            return true;
        }
    n = CPPROF__ARRAY_ADD(l);
    if (n)
        *n = (struct neighbour){key, weight};
    return n != NULL;
}

/* The cosine of the angle between two lists of neighbours. */
static double
alike(const void *first, const void *second)
{
    const neighbours *a = first, *b = second;
    double both = 0, of_a = 0, of_b = 0;
    size_t i, k;

    for (i = 0; i < a->n; i++) {
        of_a += a->at[i].weight * a->at[i].weight;
        for (k = 0; k < b->n; k++)
            if (a->at[i].key == b->at[k].key)
                both += a->at[i].weight * b->at[k].weight;
    }
    for (k = 0; k < b->n; k++)
        of_b += b->at[k].weight * b->at[k].weight;
    return of_a > 0 && of_b > 0 ? both / sqrt(of_a * of_b) : 0;
}

static struct candidate *
candidate_of(struct matcher *t, uint32_t key)
{
    const struct cpprof__gate_key *k = &t->m->keys.at[key];
    uint32_t i = t->candidate_of[key];

    return !i ? NULL : k->head > 0 ? &t->new.at[i - 1] : &t->gone.at[i - 1];
}

/* Collect the neighbours of all candidates in one way over the tree. */
static void
collect(struct matcher *t)
{
    struct cpprof__gate_model *m = t->m;
    size_t i;

    for (i = 0; i < m->nodes.n && !t->failed; i++) {
        const struct cpprof__gate_node *n = &m->nodes.at[i];
        uint32_t above = n->parent == CPPROF__GATE_NONE
                             ? CPPROF__GATE_NONE
                             : m->nodes.at[n->parent].key;
        struct candidate *c = candidate_of(t, n->key);
        struct candidate *caller =
            above == CPPROF__GATE_NONE ? NULL : candidate_of(t, above);
        double weight = n->base + n->head;

        if (c && !add_neighbour(
                     &c->callers,
                     above == CPPROF__GATE_NONE ? above : m->keys.at[above].is,
                     weight))
            t->failed = true;
        if (caller &&
            !add_neighbour(&caller->callees, m->keys.at[n->key].is, weight))
            t->failed = true;
    }
}

/* ----------------------------------------------------------- candidates ----
 */

static int
by_size(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    return x->key < y->key ? -1 : x->key > y->key;
}

static bool
is_alone(const struct cpprof__gate_key *k, uint32_t key)
{
    return k->is_judged && !k->renamed && k->is == key &&
           (k->base > 0) != (k->head > 0);
}

static void
find_candidates(struct matcher *t, double base, double head)
{
    struct cpprof__gate_model *m = t->m;
    struct candidate *c;
    uint32_t i;

    for (i = 0; i < m->keys.n; i++) {
        const struct cpprof__gate_key *k = &m->keys.at[i];
        double size = k->base > 0 ? k->base / base : k->head / head;

        if (!is_alone(k, i) || size < LEAST_SHARE)
            continue;
        c = k->base > 0 ? CPPROF__ARRAY_ADD(&t->gone)
                        : CPPROF__ARRAY_ADD(&t->new);
        if (!c) {
            t->failed = true;
            return;
        }
        *c = (struct candidate){.key = i, .size = k->base + k->head};
    }
    if (t->gone.n)
        qsort(t->gone.at, t->gone.n, sizeof *t->gone.at, by_size);
    if (t->new.n)
        qsort(t->new.at, t->new.n, sizeof *t->new.at, by_size);
    for (i = 0; i < t->gone.n; i++)
        t->candidate_of[t->gone.at[i].key] = i < MOST_CANDIDATES ? i + 1 : 0;
    for (i = 0; i < t->new.n; i++)
        t->candidate_of[t->new.at[i].key] = i < MOST_CANDIDATES ? i + 1 : 0;
}

static double
score(const struct candidate *a, const struct candidate *b)
{
    bool are_leaves = !a->callees.n && !b->callees.n;
    double ratio = a->size > b->size ? a->size / b->size : b->size / a->size;
    double all = alike(&a->callers, &b->callers);

    if (ratio > (are_leaves ? MOST_LEAF_RATIO : MOST_RATIO))
        return 0;
    if (!are_leaves)
        all = (all + alike(&a->callees, &b->callees)) / 2;
    return all < LEAST_ALIKE ? 0 : all / pow(ratio, 0.25);
}

/* Take the pair that is most alike, as long as there is one. */
static size_t
pair_up(struct matcher *t)
{
    struct cpprof__gate_model *m = t->m;
    size_t n_pairs = 0, i, k;

    for (;;) {
        struct candidate *gone = NULL, *new = NULL;
        double best = 0;

        for (i = 0; i < t->gone.n && i < MOST_CANDIDATES; i++)
            for (k = 0; k < t->new.n &&k < MOST_CANDIDATES; k++) {
                double s =
                    m->keys.at[t->gone.at[i].key].renamed ||
                            m->keys.at[t->new.at[k].key].is != t->new.at[k].key
                        ? 0
                        : score(&t->gone.at[i], &t->new.at[k]);

                if (s > best) {
                    best = s;
                    gone = &t->gone.at[i];
                    new = &t->new.at[k];
                }
            }
        if (!gone)
            return n_pairs;
        m->keys.at[gone->key].renamed = m->keys.at[new->key].name;
        m->keys.at[new->key].is = gone->key;
        n_pairs++;
    }
}

/* What has callers is a part of them; a first function of a stack has none. */
static void
fold(struct matcher *t, struct candidate *c)
{
    struct cpprof__gate_key *k = &t->m->keys.at[c->key];
    double all = 0, below = 0;
    size_t i;

    if (k->renamed || k->is != c->key)
        return;
    for (i = 0; i < c->callers.n; i++) {
        all += c->callers.at[i].weight;
        if (c->callers.at[i].key != CPPROF__GATE_NONE)
            below += c->callers.at[i].weight;
    }
    k->is_folded = below > all / 2;
}

static void
forget(struct matcher *t)
{
    size_t i;

    for (i = 0; i < t->gone.n; i++) {
        CPPROF__ARRAY_FREE(&t->gone.at[i].callers);
        CPPROF__ARRAY_FREE(&t->gone.at[i].callees);
    }
    for (i = 0; i < t->new.n; i++) {
        CPPROF__ARRAY_FREE(&t->new.at[i].callers);
        CPPROF__ARRAY_FREE(&t->new.at[i].callees);
    }
    t->gone.n = t->new.n = 0;
}

/* ----------------------------------------------------------------- all ---- */

/* The cumulative means of a run of each key, and of all. */
static enum cpprof_status
measure(struct cpprof__gate_model *m, double *base, double *head,
        struct cpprof_error *error)
{
    struct cpprof__gate_values v = {0};
    enum cpprof_status status = cpprof__gate_count(m, &v, error);
    size_t i, k;

    *base = *head = 0;
    for (k = 0; k < m->runs.n; k++)
        *(m->runs.at[k].is_head ? head : base) +=
            m->runs.at[k].total / m->runs.at[k].work /
            (double)(m->runs.at[k].is_head ? m->n_head : m->n_base);
    for (i = 0; status == CPPROF_OK && i < m->keys.n; i++) {
        struct cpprof__gate_sides s =
            cpprof__gate_sides(v.cum + i * v.n_runs, m->n_base, m->n_head);

        m->keys.at[i].base = s.mean[0];
        m->keys.at[i].head = s.mean[1];
    }
    cpprof__gate_values_free(&v);
    return status;
}

enum cpprof_status
cpprof__gate_match(struct cpprof__gate_model *m, struct cpprof_error *error)
{
    struct matcher t = {.m = m};
    double base, head;
    enum cpprof_status status = measure(m, &base, &head, error);
    int pass;
    size_t i;

    if (status != CPPROF_OK || m->flags->by != CPPROF__GATE_FUNCTION)
        return status;
    t.candidate_of = calloc(m->keys.n + 1, sizeof *t.candidate_of);
    t.failed = !t.candidate_of;
    for (pass = 0; pass < MOST_PASSES && !t.failed; pass++) {
        forget(&t);
        for (i = 0; i < m->keys.n; i++)
            t.candidate_of[i] = 0;
        find_candidates(&t, base, head);
        if (!t.failed)
            collect(&t);
        if (t.failed || !pair_up(&t))
            break;
    }
    for (i = 0; i < t.gone.n && !t.failed; i++)
        fold(&t, &t.gone.at[i]);
    for (i = 0; i < t.new.n && !t.failed; i++)
        fold(&t, &t.new.at[i]);
    forget(&t);
    CPPROF__ARRAY_FREE(&t.gone);
    CPPROF__ARRAY_FREE(&t.new);
    free(t.candidate_of);
    return t.failed ? cpprof__fail_nomem(error) : CPPROF_OK;
}
