/* SPDX-License-Identifier: MIT */
/*
 * How often the blocks of a routine ran. What is known of a block are its
 * samples n and its weight t, the instructions that can have been sampled: it
 * ran n / t times, up to a factor that all share, plus noise. What enters a
 * block also leaves it, so the edges f are sought under which the samples of
 * all blocks are most likely, each a Poisson number of mean t times what flows
 * through it: Richardson-Lucy, with what enters and what leaves a block as two
 * observations that agree more with every round.
 *
 * Two things keep it sober. A block of many samples is no surer than EVIDENCE
 * of them make it: beyond that the time of its instructions is what differs,
 * not chance. And every block begins with a PRIOR of samples as a program would
 * have that branches at random: so a block without samples in a routine with
 * few is not taken for one that never runs.
 */
#include "cli/pgo/pgo.h"

#include <math.h>
#include <stdlib.h>

#define EVIDENCE 40.0
#define PRIOR    0.5
#define ROUNDS   60
/* Of a block, in samples of an instruction of the routine. */
#define LEAST_PRIOR 0.1
#define MOST_PRIOR  2.0
/* Of a branch back, as loops go round some times. */
#define BACK 0.88
/* Rounds until what a random walk meets does not change much. */
#define WALK_ROUNDS 40

struct flow {
    struct cpprof__pgo_code *code;
    double *in, *out; /* of blocks: the sums of their edges */
    double *n, *t;    /* evidence of blocks */
    double *prior;    /* how often a random walk meets them */
};

/* ------------------------------------------------------------- prior ---- */

/* The share of a block's edges that are not back, of which there are n_back. */
static double
share_of(const struct cpprof__pgo_edge *e, size_t n_back, size_t n_on)
{
    bool is_back = e->to != CPPROF__PGO_OUTSIDE && e->to <= e->from;

    if (!n_back || !n_on)
        return 1.0 / (double)(n_back + n_on);
    return is_back ? BACK / (double)n_back : (1 - BACK) / (double)n_on;
}

static bool
walk(struct flow *f)
{
    struct cpprof__pgo_code *code = f->code;
    size_t n = code->blocks.n, i, round;
    size_t *back = calloc(n, sizeof *back), *on = calloc(n, sizeof *on);
    double *next = calloc(n, sizeof *next);
    bool ok = back && on && next;

    for (i = 0; ok && i < code->edges.n; i++) {
        const struct cpprof__pgo_edge *e = &code->edges.at[i];

        if (e->from != CPPROF__PGO_OUTSIDE)
            (e->to != CPPROF__PGO_OUTSIDE && e->to <= e->from ? back
                                                              : on)[e->from]++;
    }
    for (round = 0; ok && round < WALK_ROUNDS; round++) {
        for (i = 0; i < n; i++)
            next[i] = 0;
        for (i = 0; i < code->edges.n; i++) {
            const struct cpprof__pgo_edge *e = &code->edges.at[i];

            if (e->to == CPPROF__PGO_OUTSIDE)
                continue;
            if (e->from == CPPROF__PGO_OUTSIDE)
                next[e->to] += e->to == 0 ? 1 : 0.001;
            else
                next[e->to] +=
                    f->prior[e->from] * share_of(e, back[e->from], on[e->from]);
        }
        for (i = 0; i < n; i++)
            f->prior[i] = next[i];
    }
    free(back);
    free(on);
    free(next);
    return ok;
}

/* --------------------------------------------------------- smoothing ---- */

/* The samples and weights to go by, with those of the prior. */
static void
weigh(struct flow *f)
{
    const struct cpprof__pgo_block *b = f->code->blocks.at;
    size_t n = f->code->blocks.n, i;
    double samples = 0, weight = 0, met = 0, rate;

    for (i = 0; i < n; i++) {
        samples += b[i].samples;
        weight += b[i].weight;
        met += b[i].weight * f->prior[i];
    }
    rate = (samples + PRIOR) / (weight + 1); /* per instruction */
    for (i = 0; i < n; i++) {
        double sure = EVIDENCE / (EVIDENCE + b[i].samples);
        double as_prior = PRIOR / rate;
        double mean = met > 0 ? f->prior[i] * weight / met : 1;

        /* In a routine with a large switch a walk meets but few blocks. */
        mean = fmin(fmax(mean, LEAST_PRIOR), MOST_PRIOR);

        f->n[i] = b[i].samples * sure + as_prior * rate * mean;
        f->t[i] = b[i].weight * sure + as_prior;
    }
}

static void
add_up(struct flow *f)
{
    const struct cpprof__pgo_code *code = f->code;
    size_t i;

    for (i = 0; i < code->blocks.n; i++)
        f->in[i] = f->out[i] = 1e-12;
    for (i = 0; i < code->edges.n; i++) {
        const struct cpprof__pgo_edge *e = &code->edges.at[i];

        if (e->from != CPPROF__PGO_OUTSIDE)
            f->out[e->from] += e->count;
        if (e->to != CPPROF__PGO_OUTSIDE)
            f->in[e->to] += e->count;
    }
}

/* Move edges to where the blocks at their ends are more likely. */
static void
fit(struct flow *f)
{
    struct cpprof__pgo_code *code = f->code;
    size_t i;

    add_up(f);
    for (i = 0; i < code->edges.n; i++) {
        struct cpprof__pgo_edge *e = &code->edges.at[i];
        double n = 0, t = 0;

        if (e->from != CPPROF__PGO_OUTSIDE) {
            n += f->n[e->from] / f->out[e->from];
            t += f->t[e->from];
        }
        if (e->to != CPPROF__PGO_OUTSIDE) {
            n += f->n[e->to] / f->in[e->to];
            t += f->t[e->to];
        }
        e->count *= n / t;
    }
}

/* Move what enters and what leaves a block towards each other. */
static void
balance(struct flow *f)
{
    struct cpprof__pgo_code *code = f->code;
    size_t i;

    add_up(f);
    for (i = 0; i < code->edges.n; i++) {
        struct cpprof__pgo_edge *e = &code->edges.at[i];

        if (e->from != CPPROF__PGO_OUTSIDE)
            e->count *= sqrt(f->in[e->from] / f->out[e->from]);
        if (e->to != CPPROF__PGO_OUTSIDE)
            e->count *= sqrt(f->out[e->to] / f->in[e->to]);
    }
}

static void
begin(struct flow *f)
{
    struct cpprof__pgo_code *code = f->code;
    size_t i;

    for (i = 0; i < code->edges.n; i++) {
        struct cpprof__pgo_edge *e = &code->edges.at[i];
        uint32_t b = e->from != CPPROF__PGO_OUTSIDE ? e->from : e->to;

        e->count = f->n[b] / f->t[b] + 1e-9;
    }
}

bool
cpprof__pgo_flow(struct cpprof__pgo_code *code)
{
    size_t n = code->blocks.n, i;
    double *all = calloc(n * 5 + 1, sizeof *all);
    struct flow f = {code, all, all + n, all + 2 * n, all + 3 * n, all + 4 * n};
    bool ok = all && walk(&f);

    if (ok) {
        weigh(&f);
        begin(&f);
        for (i = 0; i < ROUNDS; i++) {
            fit(&f);
            balance(&f);
        }
        add_up(&f);
    }
    for (i = 0; ok && i < n; i++)
        code->blocks.at[i].count = (f.in[i] + f.out[i]) / 2;
    free(all);
    return ok;
}

/* -------------------------------------------------------- dominators ---- */

/* The nearest common dominator. */
static uint32_t
meet(const struct cpprof__pgo_block *b, const uint32_t *order, uint32_t x,
     uint32_t y)
{
    while (x != y)
        if (order[x] > order[y])
            x = b[x].dominator;
        else
            y = b[y].dominator;
    return x;
}

/* A search that numbers blocks in the reverse of the order in which it leaves
 * them. */
struct search {
    const struct cpprof__pgo_code *code;
    const uint32_t *first, *edge;
    uint32_t *order, *by_order;
    uint32_t *stack; /* pairs: a block, its next edge */
    uint32_t left;   /* numbers that are not given yet */
};

#define NO_ORDER   UINT32_MAX
#define IS_ENTERED (UINT32_MAX - 1)

static void
search_from(struct search *s, uint32_t root)
{
    size_t depth = 1;

    if (s->order[root] != NO_ORDER)
        return;
    s->order[root] = IS_ENTERED;
    s->stack[0] = root;
    s->stack[1] = s->first[root];
    while (depth) {
        uint32_t *top = s->stack + 2 * (depth - 1), to;

        if (top[1] == s->first[top[0] + 1]) {
            s->order[top[0]] = --s->left;
            s->by_order[s->left] = top[0];
            depth--;
            continue;
        }
        to = s->code->edges.at[s->edge[top[1]++]].to;
        if (to == CPPROF__PGO_OUTSIDE || s->order[to] != NO_ORDER)
            continue;
        s->order[to] = IS_ENTERED;
        s->stack[2 * depth] = to;
        s->stack[2 * depth + 1] = s->first[to];
        depth++;
    }
}

/* Block 0 gets the lowest number of what is reached. */
static bool
number_blocks(const struct cpprof__pgo_code *code, const uint32_t *first,
              const uint32_t *edge, uint32_t *order, uint32_t *by_order)
{
    uint32_t n = (uint32_t)code->blocks.n, i;
    struct search s = {code, first, edge, order, by_order, NULL, n};
    size_t k;

    s.stack = malloc(((size_t)n + 1) * 2 * sizeof *s.stack);
    if (!s.stack)
        return false;
    for (i = 0; i < n; i++)
        order[i] = NO_ORDER;
    for (k = 0; k < code->edges.n; k++)
        if (code->edges.at[k].from == CPPROF__PGO_OUTSIDE &&
            code->edges.at[k].to != 0)
            search_from(&s, code->edges.at[k].to);
    for (i = 0; i < n; i++)
        search_from(&s, i);
    free(s.stack);
    return true;
}

/* The edges out of block b are edge[first[b]] to edge[first[b + 1] - 1]. */
static void
sort_edges(const struct cpprof__pgo_code *code, uint32_t *first, uint32_t *edge)
{
    size_t n = code->blocks.n, i;

    for (i = 0; i < code->edges.n; i++)
        if (code->edges.at[i].from != CPPROF__PGO_OUTSIDE)
            first[code->edges.at[i].from + 1]++;
    for (i = 0; i < n; i++)
        first[i + 1] += first[i];
    for (i = code->edges.n; i-- > 0;)
        if (code->edges.at[i].from != CPPROF__PGO_OUTSIDE)
            edge[--first[code->edges.at[i].from + 1]] = (uint32_t)i;
    /* Now first[b + 1] is where b begins: move back by one. */
    for (i = 0; i < n; i++)
        first[i] = first[i + 1];
    first[n] = 0;
    for (i = 0; i < code->edges.n; i++)
        first[n] += code->edges.at[i].from != CPPROF__PGO_OUTSIDE;
}

bool
cpprof__pgo_dominators(struct cpprof__pgo_code *code)
{
    uint32_t n = (uint32_t)code->blocks.n, i;
    struct cpprof__pgo_block *b = code->blocks.at;
    uint32_t *all = calloc(3 * ((size_t)n + 1) + code->edges.n, sizeof *all);
    uint32_t *first = all, *order = all + n + 1, *by_order = order + n + 1;
    uint32_t *edge = by_order + n + 1;
    bool changed = true;
    size_t k;

    if (!all)
        return false;
    sort_edges(code, first, edge);
    if (!number_blocks(code, first, edge, order, by_order)) {
        free(all);
        return false;
    }
    for (i = 0; i < n; i++)
        b[i].dominator = UINT32_MAX;
    for (k = 0; k < code->edges.n; k++) /* entries: the first stands for all */
        if (code->edges.at[k].from == CPPROF__PGO_OUTSIDE)
            b[code->edges.at[k].to].dominator = 0;
    b[0].dominator = 0;
    while (changed) {
        changed = false;
        for (k = 0; k < n; k++)
            for (i = first[by_order[k]]; i < first[by_order[k] + 1]; i++) {
                uint32_t from = by_order[k], to = code->edges.at[edge[i]].to;
                uint32_t was, is;

                if (to == CPPROF__PGO_OUTSIDE || !to ||
                    b[from].dominator == UINT32_MAX)
                    continue;
                was = b[to].dominator;
                is = was == UINT32_MAX ? from : meet(b, order, was, from);
                b[to].dominator = is;
                changed |= is != was;
            }
    }
    for (k = 0; k < n; k++) {
        i = by_order[k];
        if (b[i].dominator == UINT32_MAX)
            b[i].dominator = 0;
        b[i].depth = i ? b[b[i].dominator].depth + 1 : 0;
    }
    free(all);
    return true;
}

bool
cpprof__pgo_dominates(const struct cpprof__pgo_code *code, uint32_t a,
                      uint32_t b)
{
    const struct cpprof__pgo_block *at = code->blocks.at;

    while (at[b].depth > at[a].depth)
        b = at[b].dominator;
    return a == b;
}
