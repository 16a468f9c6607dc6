/* SPDX-License-Identifier: MIT */
/*
 * The little of statistics that a gate needs: means and squares of two sides,
 * Student's distribution, and the ways in which runs can be split.
 */
#include "cli/gate/gate.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------ Student ---- */

/* The continued fraction of the incomplete beta function, by Lentz's method.
 * Source: Numerical Recipes in C, 6.4; DLMF 8.17.22. */
static double
beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1), h, step;
    int m;

    d = 1 / (fabs(d) < tiny ? tiny : d);
    h = d;
    for (m = 1; m < 500; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd =
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));

        d = 1 + even * d;
        c = 1 + even / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        h *= d * c;
        d = 1 + odd * d;
        c = 1 + odd / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        step = d * c;
        h *= step;
        if (fabs(step - 1) < 1e-12)
            break;
    }
    return h;
}

/* The regularised incomplete beta function I_x(a, b). */
static double
beta(double a, double b, double x)
{
    double front;

    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    front =
        exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double
cpprof__student_tail(double t, double df)
{
    double half = beta(df / 2, 0.5, df / (df + t * t)) / 2;

    return t > 0 ? half : 1 - half;
}

double
cpprof__student_quantile(double tail, double df)
{
    double low = 0, high = 1;
    int i;

    while (high < 1e9 && cpprof__student_tail(high, df) > tail)
        high *= 2;
    for (i = 0; i < 100; i++) {
        double middle = (low + high) / 2;

        *(cpprof__student_tail(middle, df) > tail ? &low : &high) = middle;
    }
    return high;
}

/* -------------------------------------------------------------- sides ---- */

static double
mean(const double *x, size_t n)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < n; i++)
        sum += x[i];
    return n ? sum / (double)n : 0;
}

static double
squares(const double *x, size_t n, double around)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < n; i++)
        sum += (x[i] - around) * (x[i] - around);
    return sum;
}

struct cpprof__gate_sides
cpprof__gate_sides(const double *x, size_t n_base, size_t n_head)
{
    struct cpprof__gate_sides s = {.base = mean(x, n_base),
                                   .head = mean(x + n_base, n_head)};

    s.within = squares(x, n_base, s.base) + squares(x + n_base, n_head, s.head);
    return s;
}

/* ------------------------------------------------------------- splits ---- */

/* n choose k, or what is more than enough. */
static double
choose(size_t n, size_t k)
{
    double all = 1;
    size_t i;

    for (i = 1; i <= k; i++)
        all *= (double)(n - k + i) / (double)i;
    return all;
}

/* The next split in the order of their bits; false after the last one. */
static bool
next_split(uint8_t *is_head, size_t n)
{
    size_t i = n - 1, ones = 0, k;

    /* The last 0 before a 1 changes places with it, and the ones behind go to
     * the end. */
    while (i > 0 && !(is_head[i] && !is_head[i - 1])) {
        ones += is_head[i];
        i--;
    }
    if (!i)
        return false;
    is_head[i - 1] = 1;
    for (k = i; k < n; k++)
        is_head[k] = k >= n - ones;
    return true;
}

/* A sample, always the same one. */
static void
shuffle(uint8_t *is_head, size_t n, uint64_t *state)
{
    size_t i, k;

    for (i = n - 1; i > 0; i--) {
        uint8_t kept = is_head[i];

        *state = *state * 6364136223846793005u + 1442695040888963407u;
        k = (size_t)((*state >> 33) % (i + 1));
        is_head[i] = is_head[k];
        is_head[k] = kept;
    }
}

enum cpprof_status
cpprof__gate_splits_make(struct cpprof__gate_splits *s, size_t n_base,
                         size_t n_head, size_t most, struct cpprof_error *error)
{
    size_t n = n_base + n_head, i;
    double all = choose(n, n_head < n_base ? n_head : n_base);
    uint64_t state = 1;
    bool is_all;

    most = most > CPPROF__GATE_MOST_SPLITS ? CPPROF__GATE_MOST_SPLITS : most;
    most = most < CPPROF__GATE_FEW_SPLITS ? CPPROF__GATE_FEW_SPLITS : most;
    is_all = all <= (double)most;

    s->n_runs = n;
    s->n = is_all ? (size_t)(all + 0.5) : most;
    if (all < CPPROF__GATE_FEW_SPLITS)
        s->n = 0;
    s->is_head = calloc(s->n + 1, n + 1);
    if (!s->is_head)
        return cpprof__fail_nomem(error);
    memset(s->is_head + n_base, 1, n_head);
    for (i = 1; i < s->n; i++) {
        uint8_t *at = s->is_head + i * n;

        memcpy(at, at - n, n);
        if (is_all)
            next_split(at, n);
        else
            shuffle(at, n, &state);
    }
    return CPPROF_OK;
}
