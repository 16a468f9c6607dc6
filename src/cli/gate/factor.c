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
/* One function in a thousand is taken for a changed one by chance. */
#define CHANGED 0.001

struct share {
    double change, weight; /* change: a log ratio */
    double limit;          /* what is further off the middle has changed */
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
find_shares(const struct cpprof__gate_model *m,
            const struct cpprof__gate_values *v, struct share *shares,
            double *x)
{
    double limit = cpprof__gate_deviate(CHANGED);
    size_t n = 0, k, i;

    for (k = 0; k < v->n_keys; k++) {
        struct cpprof__gate_sides s;
        struct cpprof__gate_error error;
        double mean;

        for (i = 0; i < m->runs.n; i++)
            x[i] = v->flat[k * m->runs.n + i] * m->runs.at[i].work /
                   m->runs.at[i].total;
        s = cpprof__gate_sides(x, m->n_base, m->n_head);
        mean = (s.mean[0] + s.mean[1]) / 2;
        if (mean < LEAST_SHARE || s.mean[0] <= 0 || s.mean[1] <= 0)
            continue;
        error = cpprof__gate_welch(&s, 0);
        shares[n++] = (struct share){
            .change = log(s.mean[1] / s.mean[0]),
            .weight = mean < MOST_WEIGHT ? mean : MOST_WEIGHT,
            .limit = cpprof__gate_t(limit, error.df) * error.se / mean,
            .key = (uint32_t)k};
    }
    return n;
}

/* Add up what did not change; its part of the whole. */
static double
add_common(const struct cpprof__gate_model *m,
           const struct cpprof__gate_values *v, const struct share *shares,
           size_t n, double *common)
{
    double middle = median_change(shares, n), part = 0;
    size_t n_runs = m->runs.n, i, k;

    memset(common, 0, n_runs * sizeof *common);
    for (k = 0; k < n; k++) {
        if (fabs(shares[k].change - middle) > shares[k].limit)
            continue;
        for (i = 0; i < n_runs; i++) {
            double x = v->flat[shares[k].key * n_runs + i];

            common[i] += x;
            part +=
                x * m->runs.at[i].work / m->runs.at[i].total / (double)n_runs;
        }
    }
    return part;
}

/* Is the difference of the sides larger than the runs of one side differ? */
static bool
is_real(const struct cpprof__gate_model *m, const double *common, double *x)
{
    struct cpprof__gate_sides s;
    struct cpprof__gate_error error;
    size_t i;

    for (i = 0; i < m->runs.n; i++)
        x[i] = log(common[i]);
    s = cpprof__gate_sides(x, m->n_base, m->n_head);
    error = cpprof__gate_welch(&s, 0);
    return fabs(s.mean[1] - s.mean[0]) >
           error.se * cpprof__gate_t(cpprof__gate_deviate(m->flags->alpha / 20),
                                     error.df);
}

/* If what did not change differs between the sides by more than the runs of a
 * side do, the program has changed as a whole, and nothing is taken out. */
static bool
find_common(const struct cpprof__gate_model *m,
            const struct cpprof__gate_values *v, struct share *shares,
            double *common, double *x)
{
    size_t n, i;

    for (i = 0; i < m->runs.n; i++)
        if (m->runs.at[i].total <= 0) /* which has no shares */
            return false;
    n = find_shares(m, v, shares, x);
    if (n)
        qsort(shares, n, sizeof *shares, by_change);
    if (add_common(m, v, shares, n, common) < LEAST_COMMON)
        return false;
    for (i = 0; i < m->runs.n; i++)
        if (common[i] <= 0)
            return false;
    return !is_real(m, common, x);
}

bool
cpprof__gate_factor(const struct cpprof__gate_model *m,
                    const struct cpprof__gate_values *v, double *factor,
                    bool *is_relative)
{
    size_t n = m->runs.n, i;
    struct share *shares = calloc(v->n_keys + 1, sizeof *shares);
    double *common = calloc(n + 1, sizeof *common);
    double *x = calloc(n + 1, sizeof *x), mean = 0;
    bool ok = shares && common && x;

    *is_relative = ok && n > 2 && find_common(m, v, shares, common, x);
    for (i = 0; *is_relative && i < n; i++)
        mean += common[i] / (double)n;
    for (i = 0; *is_relative && i < n; i++)
        factor[i] = common[i] / mean;
    free(shares);
    free(common);
    free(x);
    return ok;
}
