/* SPDX-License-Identifier: MIT */
/*
 * The verdicts. docs/gate.md tells in plain words what is done here:
 *
 * 1. What is common to all functions of a run, the speed of the machine, is
 *    taken out by what did not change (factor.c).
 * 2. Each function's difference is divided by its standard error, which comes
 *    from the runs (measure_row()).
 * 3. How large this must be follows from the same figures of splits of the runs
 *    that mean nothing (expected()), with few runs from Student's distribution.
 * 4. The limit is chosen so that of all that is told, a part of alpha is told
 *    wrongly (limit_of()).
 *
 * The error that may be made, alpha, is parted: a half is for functions, a
 * tenth for the whole, a tenth for the choice of step 1. The rest is left,
 * because step 1 looks at the sides once and not again for each split.
 */
#include "cli/gate/gate.h"

#include "base/status.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* A function with more than this of the whole in all runs is the whole. */
#define NEARLY_ALL 0.99
/* The typical scatter counts for as much as that many runs do, so that one
 * that is small by chance makes no difference look large. */
#define PRIOR_RUNS 4.0
/* Splits say nothing of differences that are smaller than that many standard
 * errors. */
#define LEAST_T 2.0
/* Figures of splits that are computed, for all functions: of more functions
 * there are fewer splits. */
#define MOST_FIGURES 40e6

struct judge {
    const struct cpprof__gate_model *m;
    const struct cpprof__gate_values *v;
    struct cpprof__gate_result *r;
    struct cpprof_error *error;
    size_t n, n_base, n_head; /* runs */
    double df;
    double of_mean;                  /* 1/n_base + 1/n_head */
    double alpha;                    /* for functions */
    double *factor;                  /* by run */
    struct cpprof__gate_sides whole; /* divided by the factor */
    double quantum;                  /* of a mean of a run */
    CPPROF__ARRAY(double) x;         /* [row * n + run], of functions */
    double *variance;                /* by row */
    double scatter;                  /* typical, by what a count would have */
    CPPROF__ARRAY(double) by_chance; /* t of splits, falling */
    struct cpprof__gate_splits splits;
};

/* ------------------------------------------------------------ standard ---- */

/* What the variance would be if samples fell by chance: of a part of a whole
 * that is fixed, in units of the quantum. */
static double
by_count(const struct judge *j, double mean)
{
    double whole = (j->whole.base + j->whole.head) / 2;
    double part = whole > 0 ? mean / whole : 0;

    return mean * (part < 1 ? 1 - part : 0);
}

static int
by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The typical ratio of a variance to that of a count. */
static bool
find_scatter(struct judge *j)
{
    size_t n = j->r->rows.n, i, n_known = 0;
    double *ratios = calloc(n + 1, sizeof *ratios);

    if (!ratios)
        return false;
    for (i = 0; i < n; i++) {
        const struct cpprof__gate_row *row = &j->r->rows.at[i];
        double chance = by_count(j, (row->base + row->head) / 2);

        if (chance > 0)
            ratios[n_known++] = j->variance[i] / chance;
    }
    qsort(ratios, n_known, sizeof *ratios, by_number);
    j->scatter = n_known ? ratios[n_known / 2] : 0;
    free(ratios);
    return true;
}

/* The standard error of a difference whose variance in runs is this one. With
 * few runs it is never below what chance alone makes. */
static double
standard_error(const struct judge *j, double variance, double mean)
{
    double chance = by_count(j, mean);
    double typical = (PRIOR_RUNS * j->scatter * chance + j->df * variance) /
                     (PRIOR_RUNS + j->df);

    if (!j->splits.n) {
        typical = typical > variance ? typical : variance;
        if (typical < chance * j->quantum)
            typical = chance * j->quantum;
    }
    return sqrt(typical * j->of_mean);
}

static double
t_of(double difference, double error)
{
    return error > 0 ? difference / error : difference > 0 ? HUGE_VAL : 0;
}

/* -------------------------------------------------------------- chance ---- */

/* t of one row under one split. */
static double
split_t(const struct judge *j, const double *x, const uint8_t *is_head,
        double sum, double sum_squares)
{
    double head = 0, base, within;
    size_t i;

    for (i = 0; i < j->n; i++)
        head += is_head[i] ? x[i] : 0;
    base = (sum - head) / (double)j->n_base;
    head /= (double)j->n_head;
    within = sum_squares - (double)j->n_base * base * base -
             (double)j->n_head * head * head;
    return t_of(head - base, standard_error(j, within > 0 ? within / j->df : 0,
                                            sum / (double)j->n));
}

static int
falling(const void *a, const void *b)
{
    return by_number(b, a);
}

/* All figures that splits give which mean nothing. */
static bool
find_by_chance(struct judge *j)
{
    size_t n_rows = j->r->rows.n, k, i, s;

    for (k = 0; k < n_rows; k++) {
        const double *x = j->x.at + k * j->n;
        double sum = 0, sum_squares = 0;

        for (i = 0; i < j->n; i++) {
            sum += x[i];
            sum_squares += x[i] * x[i];
        }
        for (s = 0; s < j->splits.n; s++) {
            double t =
                split_t(j, x, j->splits.is_head + s * j->n, sum, sum_squares);
            double *kept =
                t > LEAST_T ? CPPROF__ARRAY_ADD(&j->by_chance) : NULL;

            if (t > LEAST_T && !kept)
                return false;
            if (kept)
                *kept = t;
        }
    }
    if (j->by_chance.n)
        qsort(j->by_chance.at, j->by_chance.n, sizeof *j->by_chance.at,
              falling);
    return true;
}

/* How many functions have t or more where nothing has changed. */
static double
expected(const struct judge *j, double t)
{
    size_t low = 0, high = j->by_chance.n;

    if (!j->splits.n)
        return (double)j->r->rows.n * cpprof__student_tail(t, j->df);
    if (t <= LEAST_T)
        return (double)j->r->rows.n;
    while (low < high) {
        size_t middle = (low + high) / 2;

        if (j->by_chance.at[middle] >= t * (1 - 1e-9))
            low = middle + 1;
        else
            high = middle;
    }
    return (double)low / (double)j->splits.n;
}

/* The least t of which so many are expected by chance. */
static double
limit_of(const struct judge *j, double n_expected)
{
    double low = 0, high = 1;
    int i;

    if (j->df <= 0)
        return HUGE_VAL;
    if (!j->splits.n)
        return cpprof__student_quantile(
            n_expected / (double)(j->r->rows.n ? j->r->rows.n : 1), j->df);
    while (high < 1e9 && expected(j, high) > n_expected)
        high *= 2;
    for (i = 0; i < 60; i++) {
        double middle = (low + high) / 2;

        *(expected(j, middle) > n_expected ? &low : &high) = middle;
    }
    return high;
}

/* --------------------------------------------------------------- rows ---- */

/* A function of which the whole has enough, and which is not the whole. */
static bool
is_tested(const struct judge *j, size_t key, const struct cpprof__gate_sides *s,
          double *share)
{
    const struct cpprof__gate_key *k = &j->m->keys.at[key];
    double base = j->whole.base > 0 ? s->base / j->whole.base : 0;
    double head = j->whole.head > 0 ? s->head / j->whole.head : 0;

    *share = base > head ? base : head;
    return k->is_judged && k->is == key && !k->is_folded &&
           *share >= j->m->flags->smallest &&
           (base < NEARLY_ALL || head < NEARLY_ALL);
}

static bool
add_row(struct judge *j, size_t key, const double *values)
{
    struct cpprof__gate_sides s;
    struct cpprof__gate_row *row;
    double *x, share;
    size_t i;

    if (!CPPROF__ARRAY_ROOM(&j->x, j->n))
        return false;
    x = j->x.at + j->x.n;
    for (i = 0; i < j->n; i++)
        x[i] = values[i] / j->factor[i];
    s = cpprof__gate_sides(x, j->n_base, j->n_head);
    if (!is_tested(j, key, &s, &share))
        return true;
    row = CPPROF__ARRAY_ADD(&j->r->rows);
    if (!row)
        return false;
    j->x.n += j->n;
    *row = (struct cpprof__gate_row){
        .key = (uint32_t)key,
        .base = s.base,
        .head = s.head,
        .share = share,
        .must_be_sure = share >= j->m->flags->sure,
        .because = CPPROF__GATE_NONE,
        .node = CPPROF__GATE_NONE,
        .se = j->df > 0 ? s.within / j->df : 0, /* the variance, for now */
    };
    return true;
}

static bool
find_rows(struct judge *j)
{
    bool flat = j->m->flags->flat && j->m->flags->by != CPPROF__GATE_LABEL;
    const double *values = flat ? j->v->flat : j->v->cum;
    size_t k;

    for (k = 0; k < j->v->n_keys; k++)
        if (!add_row(j, k, values + k * j->n))
            return false;
    j->variance = calloc(j->r->rows.n + 1, sizeof *j->variance);
    for (k = 0; j->variance && k < j->r->rows.n; k++)
        j->variance[k] = j->r->rows.at[k].se;
    return j->variance != NULL;
}

/* The verdict of a row of which everything else is known. */
static void
decide(const struct judge *j, struct cpprof__gate_row *row, double limit)
{
    double most = j->m->flags->fail_over, half = limit * row->se, need;
    double d = row->head - row->base, runs = 2 / j->of_mean;

    if (j->df <= 0)
        half = HUGE_VAL;
    if (row->base > 0) {
        row->growth = d / row->base;
        row->low = (d - half) / row->base;
        row->high = (d + half) / row->base;
    } else {
        row->growth = row->high = HUGE_VAL;
        row->low = row->is_proven ? HUGE_VAL : 0;
    }
    if (row->is_proven && row->high >= most)
        row->verdict = CPPROF__GATE_FAIL;
    else if (row->high < most)
        row->verdict = CPPROF__GATE_PASS;
    else
        row->verdict = CPPROF__GATE_INCONCLUSIVE;
    if (row->verdict != CPPROF__GATE_INCONCLUSIVE)
        return;
    need = row->base > 0 ? most * row->base - d : 0;
    need = need > d ? need : d;
    if (need <= 0)
        row->n_further = HUGE_VAL;
    else if (isinf(half))
        row->n_further = 7;
    else
        row->n_further = ceil(runs * pow((half + row->se) / need, 2) - runs);
    if (row->n_further < 1)
        row->n_further = 1;
}

static int
by_t(const void *a, const void *b)
{
    const struct cpprof__gate_row *x = a, *y = b;

    if (x->t != y->t)
        return x->t < y->t ? 1 : -1;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* Rows sorted by t: how many are proven. Their false discovery rates, too. */
static size_t
find_proven(struct judge *j)
{
    struct cpprof__gate_row *rows = j->r->rows.at;
    size_t n = j->r->rows.n, n_proven = 0, i;
    double least = 1;

    for (i = n; i-- > 0;) {
        double all = j->df > 0 ? expected(j, rows[i].t) : (double)n;

        /* Of what is no difference splits keep no figures. */
        if (j->df > 0 && rows[i].t <= LEAST_T)
            rows[i].p = cpprof__student_tail(rows[i].t, j->df);
        else
            rows[i].p = all / (double)n;
        if (all / (double)(i + 1) < least)
            least = all / (double)(i + 1);
        rows[i].q = least;
        if (least <= j->alpha && !n_proven)
            n_proven = i + 1;
    }
    for (i = 0; i < n_proven; i++)
        rows[i].is_proven = true;
    return n_proven;
}

static void
judge_functions(struct judge *j)
{
    struct cpprof__gate_row *rows = j->r->rows.at;
    size_t n = j->r->rows.n, n_proven, i;
    double limit;

    for (i = 0; i < n; i++) {
        rows[i].se = standard_error(j, j->variance[i],
                                    (rows[i].base + rows[i].head) / 2);
        rows[i].t =
            j->df > 0 ? t_of(rows[i].head - rows[i].base, rows[i].se) : 0;
        if (j->whole.base > 0)
            rows[i].of_whole = (rows[i].head - rows[i].base) / j->whole.base;
    }
    if (n)
        qsort(rows, n, sizeof *rows, by_t);
    n_proven = find_proven(j);
    limit = limit_of(j, j->alpha * (double)(n_proven ? n_proven : 1));
    for (i = 0; i < n; i++)
        decide(j, &rows[i], limit);
}

/* The whole is compared as it is: its noise is what the machine does. */
static bool
judge_whole(struct judge *j)
{
    double alpha = j->m->flags->alpha / 10, *x = calloc(j->n + 1, sizeof *x);
    struct cpprof__gate_row row = {.key = CPPROF__GATE_NONE,
                                   .share = 1,
                                   .must_be_sure = true,
                                   .because = CPPROF__GATE_NONE,
                                   .node = CPPROF__GATE_NONE};
    struct cpprof__gate_sides s;
    double variance;
    size_t i;

    if (!x || !CPPROF__ARRAY_ROOM(&j->r->rows, 1)) {
        free(x);
        return false;
    }
    for (i = 0; i < j->n; i++)
        x[i] = j->m->runs.at[i].total / j->m->runs.at[i].work;
    s = cpprof__gate_sides(x, j->n_base, j->n_head);
    free(x);
    variance = j->df > 0 ? s.within / j->df : 0;
    if (j->n < 6 && variance < s.base * j->quantum)
        variance = s.base * j->quantum;
    row.base = s.base;
    row.head = s.head;
    row.se = sqrt(variance * j->of_mean);
    row.t = j->df > 0 ? t_of(s.head - s.base, row.se) : 0;
    row.p = row.q = j->df > 0 ? cpprof__student_tail(row.t, j->df) : 1;
    row.is_proven = j->df > 0 && row.p <= alpha;
    decide(j, &row, j->df > 0 ? cpprof__student_quantile(alpha, j->df) : 0);
    row.of_whole = row.growth;
    memmove(j->r->rows.at + 1, j->r->rows.at,
            j->r->rows.n++ * sizeof *j->r->rows.at);
    j->r->rows.at[0] = row;
    return true;
}

/* ---------------------------------------------------------------- all ---- */

/* Failures first, then what grew most. */
static int
by_importance(const void *a, const void *b)
{
    const struct cpprof__gate_row *x = a, *y = b;
    bool x_fails = x->verdict == CPPROF__GATE_FAIL;
    bool y_fails = y->verdict == CPPROF__GATE_FAIL;

    if (x_fails != y_fails)
        return x_fails ? -1 : 1;
    if (x->of_whole != y->of_whole)
        return x->of_whole < y->of_whole ? 1 : -1;
    return x->key < y->key ? -1 : x->key > y->key;
}

static void
conclude(struct cpprof__gate_result *r)
{
    size_t i;

    r->verdict = CPPROF__GATE_PASS;
    for (i = 0; i < r->rows.n; i++) {
        const struct cpprof__gate_row *row = &r->rows.at[i];

        if (row->verdict == CPPROF__GATE_FAIL)
            r->verdict = CPPROF__GATE_FAIL;
        if (row->verdict == CPPROF__GATE_INCONCLUSIVE && row->must_be_sure) {
            if (r->verdict == CPPROF__GATE_PASS)
                r->verdict = CPPROF__GATE_INCONCLUSIVE;
            if (row->n_further > r->n_further)
                r->n_further = row->n_further;
        }
    }
    if (r->verdict != CPPROF__GATE_INCONCLUSIVE)
        r->n_further = 0;
}

static bool
find_whole(struct judge *j)
{
    double *x = calloc(j->n + 1, sizeof *x), work = 0;
    size_t i;

    if (!x)
        return false;
    for (i = 0; i < j->n; i++) {
        x[i] = j->m->runs.at[i].total / j->m->runs.at[i].work / j->factor[i];
        work += j->m->runs.at[i].work / (double)j->n;
    }
    j->whole = cpprof__gate_sides(x, j->n_base, j->n_head);
    j->quantum = j->m->quantum / work;
    free(x);
    return true;
}

static bool
judge_all(struct judge *j)
{
    const char *per = j->m->flags->per;

    if (!cpprof__gate_factor(j->m, j->v, j->factor, &j->r->is_relative) ||
        !find_whole(j) || !find_rows(j) ||
        cpprof__gate_splits_make(
            &j->splits, j->n_base, j->n_head,
            (size_t)(MOST_FIGURES / (double)(j->r->rows.n + 1)),
            j->error) != CPPROF_OK ||
        !find_scatter(j))
        return false;
    j->r->n_tested = j->r->rows.n;
    j->r->n_splits = j->splits.n;
    if (!find_by_chance(j))
        return false;
    judge_functions(j);
    if (j->r->rows.n)
        qsort(j->r->rows.at, j->r->rows.n, sizeof *j->r->rows.at,
              by_importance);
    j->r->has_whole = !per || strcmp(per, "total") != 0;
    return !j->r->has_whole || judge_whole(j);
}

enum cpprof_status
cpprof__gate_judge(const struct cpprof__gate_model *m,
                   const struct cpprof__gate_values *v,
                   struct cpprof__gate_result *r, struct cpprof_error *error)
{
    struct judge j = {.m = m,
                      .v = v,
                      .r = r,
                      .error = error,
                      .n = m->runs.n,
                      .n_base = m->n_base,
                      .n_head = m->n_head,
                      .df = (double)m->runs.n - 2,
                      .alpha = m->flags->alpha / 2};
    size_t i;
    bool ok;

    j.of_mean = 1 / (double)m->n_base + 1 / (double)m->n_head;
    j.factor = calloc(j.n + 1, sizeof *j.factor);
    for (i = 0; j.factor && i < j.n; i++)
        j.factor[i] = 1;
    ok = j.factor && judge_all(&j);
    if (ok)
        conclude(r);
    free(j.factor);
    free(j.variance);
    free(j.splits.is_head);
    CPPROF__ARRAY_FREE(&j.x);
    CPPROF__ARRAY_FREE(&j.by_chance);
    return ok ? CPPROF_OK : cpprof__fail_nomem(error);
}

void
cpprof__gate_note(struct cpprof__gate_result *r, const char *format, ...)
{
    va_list args;
    char *text = NULL, **added;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    added = text ? CPPROF__ARRAY_ADD(&r->notes) : NULL;
    if (added)
        *added = text;
    else
        free(text);
}

void
cpprof__gate_result_free(struct cpprof__gate_result *r)
{
    size_t i;

    for (i = 0; i < r->notes.n; i++)
        free(r->notes.at[i]);
    CPPROF__ARRAY_FREE(&r->notes);
    CPPROF__ARRAY_FREE(&r->rows);
}
