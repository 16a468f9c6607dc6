/* SPDX-License-Identifier: MIT */
/*
 * What is common to all functions of a run: how fast the machine was. It is
 * found by the functions that did not change between the sides. Their middle is
 * the weighted median of all changes, so that half of a program may change and
 * the rest is still seen as what it is.
 */
#include "cli/gate/gate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* No function weighs more than this part; smaller ones say
 * nothing; what did not change must be that much. */
#define MOST_WEIGHT  0.2
#define LEAST_SHARE  0.001
#define LEAST_COMMON 0.3

struct sides {
    const struct cpprof__gate_model *m;
    const struct cpprof__gate_values *v;
    size_t n, n_base, n_head; /* runs */
    double df;
    double of_mean; /* 1/n_base + 1/n_head */
};

struct share {
    double change, weight, error; /* of a log ratio */
    uint32_t key;
};

static int
by_change(const void *a, const void *b)
{
    const struct share *x = a, *y = b;

    return x->change < y->change ? -1 : x->change > y->change;
}

/* The median of changes by weight; the shares are sorted. */
static double
median_change(const struct share *shares, size_t n)
{
    double all = 0, sum = 0;
    size_t i;

    for (i = 0; i < n; i++)
        all += shares[i].weight;
    for (i = 0; i + 1 < n && sum + shares[i].weight < all / 2; i++)
        sum += shares[i].weight;
    return n ? shares[i].change : 0;
}

/* How the share of each function in its runs changed, of those that are large
 * enough to say something. Returns their number. */
static size_t
find_shares(const struct sides *j, struct share *shares, double *x)
{
    size_t n = 0, k, i;

    for (k = 0; k < j->v->n_keys; k++) {
        struct cpprof__gate_sides s;
        double mean;

        for (i = 0; i < j->n; i++)
            x[i] = j->v->flat[k * j->n + i] * j->m->runs.at[i].work /
                   j->m->runs.at[i].total;
        s = cpprof__gate_sides(x, j->n_base, j->n_head);
        mean = (s.base + s.head) / 2;
        if (mean < LEAST_SHARE || s.base <= 0 || s.head <= 0)
            continue;
        shares[n++] =
            (struct share){.change = log(s.head / s.base),
                           .weight = mean < MOST_WEIGHT ? mean : MOST_WEIGHT,
                           .error = sqrt(s.within / j->df * j->of_mean) / mean,
                           .key = (uint32_t)k};
    }
    return n;
}

/* Add up what did not change; its part of the whole. */
static double
add_common(const struct sides *j, const struct share *shares, size_t n,
           double *common)
{
    double middle = median_change(shares, n), part = 0;
    double limit = cpprof__student_quantile(0.001, j->df);
    size_t i, k;

    memset(common, 0, j->n * sizeof *common);
    for (k = 0; k < n; k++) {
        if (fabs(shares[k].change - middle) > limit * shares[k].error)
            continue;
        for (i = 0; i < j->n; i++) {
            double x = j->v->flat[shares[k].key * j->n + i];

            common[i] += x;
            part += x * j->m->runs.at[i].work / j->m->runs.at[i].total /
                    (double)j->n;
        }
    }
    return part;
}

/* Is the difference of the sides larger than the runs of one side differ? */
static bool
is_real(const struct sides *j, const double *common, double *x)
{
    struct cpprof__gate_sides s;
    size_t i;

    for (i = 0; i < j->n; i++)
        x[i] = log(common[i]);
    s = cpprof__gate_sides(x, j->n_base, j->n_head);
    return fabs(s.head - s.base) >
           cpprof__student_quantile(j->m->flags->alpha / 20, j->df) *
               sqrt(s.within / j->df * j->of_mean);
}

/* If what did not change differs between the sides by more than the runs of a
 * side do, the program has changed as a whole, and nothing is taken out. */
static bool
find_common(const struct sides *j, struct share *shares, double *common,
            double *x)
{
    size_t n = find_shares(j, shares, x), i;

    if (n)
        qsort(shares, n, sizeof *shares, by_change);
    if (add_common(j, shares, n, common) < LEAST_COMMON)
        return false;
    for (i = 0; i < j->n; i++)
        if (common[i] <= 0)
            return false;
    return !is_real(j, common, x);
}

bool
cpprof__gate_factor(const struct cpprof__gate_model *m,
                    const struct cpprof__gate_values *v, double *factor,
                    bool *is_relative)
{
    const struct sides j = {.m = m,
                            .v = v,
                            .n = m->runs.n,
                            .n_base = m->n_base,
                            .n_head = m->n_head,
                            .df = (double)m->runs.n - 2,
                            .of_mean =
                                1 / (double)m->n_base + 1 / (double)m->n_head};
    struct share *shares = calloc(v->n_keys + 1, sizeof *shares);
    double *common = calloc(j.n + 1, sizeof *common);
    double *x = calloc(j.n + 1, sizeof *x), mean = 0;
    bool ok = shares && common && x;
    size_t i;

    *is_relative = ok && j.df > 0 && find_common(&j, shares, common, x);
    for (i = 0; *is_relative && i < j.n; i++)
        mean += common[i] / (double)j.n;
    for (i = 0; *is_relative && i < j.n; i++)
        factor[i] = common[i] / mean;
    free(shares);
    free(common);
    free(x);
    return ok;
}
