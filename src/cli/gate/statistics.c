/* SPDX-License-Identifier: MIT */
/*
 * The little of statistics that a gate needs: the difference of the means of
 * two sides that need not scatter alike nor have equally many runs (Welch, with
 * Satterthwaite's degrees of freedom), and how rare such a difference is.
 *
 * Rare is told as the deviate of the normal distribution that is as rare, so
 * that differences of few and of many degrees of freedom compare. Source:
 * Wallace, "Bounds on normal approximations to Student's and the chi-square
 * distributions", 1959. Of one to three degrees it errs towards less rare.
 */
#include "cli/gate/gate.h"

#include <math.h>

/* What is known besides the runs of a side counts for as much as that many
 * runs do, so that runs that are close to each other by chance make no
 * difference look large. */
#define PRIOR_RUNS 4.0

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
    struct cpprof__gate_sides s = {
        .mean = {mean(x, n_base), mean(x + n_base, n_head)},
        .n = {(double)n_base, (double)n_head}};

    s.squares[0] = squares(x, n_base, s.mean[0]);
    s.squares[1] = squares(x + n_base, n_head, s.mean[1]);
    return s;
}

double
cpprof__gate_pooled(const struct cpprof__gate_sides *s)
{
    double df = s->n[0] + s->n[1] - 2;

    return df > 0 ? (s->squares[0] + s->squares[1]) / df : 0;
}

struct cpprof__gate_error
cpprof__gate_welch(const struct cpprof__gate_sides *s, double typical)
{
    double pooled = cpprof__gate_pooled(s), all = 0, by_df = 0;
    int i;

    pooled = pooled > typical ? pooled : typical;
    for (i = 0; i < 2; i++) {
        double df = s->n[i] - 1;
        double own = df > 0 ? s->squares[i] / df : 0;
        double least =
            (PRIOR_RUNS * pooled + s->squares[i]) / (PRIOR_RUNS + df);
        double part = (own > least ? own : least) / s->n[i];

        all += part;
        by_df += df > 0 ? part * part / df : HUGE_VAL;
    }
    return (struct cpprof__gate_error){sqrt(all),
                                       by_df > 0 ? all * all / by_df : 1};
}

double
cpprof__gate_rarity(double t, double df)
{
    double z;

    if (df <= 0)
        return 0;
    z = sqrt(df * log1p(t * t / df)) * (8 * df + 1) / (8 * df + 3);
    return t > 0 ? z : -z;
}

double
cpprof__gate_t(double z, double df)
{
    double scaled = z * (8 * df + 3) / (8 * df + 1);

    return df > 0 ? sqrt(df * expm1(scaled * scaled / df)) : HUGE_VAL;
}

double
cpprof__gate_tail(double z)
{
    return erfc(z / M_SQRT2) / 2;
}
