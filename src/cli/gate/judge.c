/* SPDX-License-Identifier: MIT */
/*
 * The verdicts. docs/gate.md tells in plain words what is done here:
 *
 * 1. What is common to all functions of a run, the speed of the machine, is
 *    taken out by what did not change (factor.c).
 * 2. Each function's difference is divided by its standard error, which comes
 *    from the runs of each side (statistics.c).
 * 3. How rare this must be follows from the same figures of splits of the runs
 *    that mean nothing (chance.c).
 * 4. The limit is chosen so that of all that is told, a part of alpha is told
 *    wrongly (find_proven()).
 *
 * The error that may be made, alpha, is parted: seven tenths are for
 * functions, a tenth for the whole, a tenth for the choice of step 1. The rest
 * is left, because step 1 looks at the sides once and not again for each split.
 */
#include "cli/gate/gate.h"

#include "base/status.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* A function with more than this of the whole in all runs is the whole. */
#define NEARLY_ALL 0.99
/* The further runs that one run of each side is told to need. */
#define RUNS_OF_ONE 7

struct judge {
    const struct cpprof__gate_model *m;
    const struct cpprof__gate_values *v;
    struct cpprof__gate_result *r;
    struct cpprof_error *error;
    double alpha;                    /* for functions */
    double *factor;                  /* by run */
    struct cpprof__gate_sides whole; /* divided by the factor */
    double quantum;                  /* of a mean of a run */
    CPPROF__ARRAY(double) x;         /* [row * n + run], of functions */
    double *typical;                 /* variances, by row */
    struct cpprof__gate_chance chance;
};

/* ------------------------------------------------------------ standard ---- */

/* What the variance would be if samples fell by chance: of a part of a whole
 * that is fixed. */
static double
by_count(const struct judge *j, const struct cpprof__gate_sides *s)
{
    double mean = (s->mean[0] + s->mean[1]) / 2;
    double whole = (j->whole.mean[0] + j->whole.mean[1]) / 2;
    double part = whole > 0 ? mean / whole : 0;

    return j->quantum * mean * (part < 1 ? 1 - part : 0);
}

static int
by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The variances that are typical of rows of that size, by the ratio of the
 * variance to that of a count. With few runs they are not below that. */
static bool
find_typical(struct judge *j)
{
    size_t n = j->r->rows.n, i, n_known = 0;
    double *ratios = calloc(n + 1, sizeof *ratios), scatter;

    j->typical = calloc(n + 1, sizeof *j->typical);
    for (i = 0; ratios && i < n; i++) {
        const struct cpprof__gate_sides *s = &j->r->rows.at[i].sides;
        double chance = by_count(j, s);

        if (chance > 0)
            ratios[n_known++] = cpprof__gate_pooled(s) / chance;
    }
    if (n_known)
        qsort(ratios, n_known, sizeof *ratios, by_number);
    scatter = n_known ? ratios[n_known / 2] : 0;
    if (!cpprof__gate_n_splits(n, j->m->n_base, j->m->n_head) && scatter < 1)
        scatter = 1;
    for (i = 0; ratios && j->typical && i < n; i++)
        j->typical[i] = scatter * by_count(j, &j->r->rows.at[i].sides);
    free(ratios);
    return ratios && j->typical;
}

/* How sure the difference of a row is. */
static void
measure(struct cpprof__gate_row *row, double typical)
{
    const struct cpprof__gate_sides *s = &row->sides;
    double d = s->mean[1] - s->mean[0];

    row->typical = typical;
    row->error = cpprof__gate_welch(s, typical);
    row->z = row->error.se > 0
                 ? cpprof__gate_rarity(d / row->error.se, row->error.df)
             : d > 0 ? HUGE_VAL
                     : 0;
}

/* --------------------------------------------------------------- rows ---- */

/* A function of which the whole has enough, and which is not the whole. In a
 * side of which filters leave nothing it has the share of the other side. */
static bool
is_tested(const struct judge *j, size_t key, const struct cpprof__gate_sides *s,
          double *share)
{
    const struct cpprof__gate_key *k = &j->m->keys.at[key];
    double base = j->whole.mean[0] > 0 ? s->mean[0] / j->whole.mean[0] : 0;
    double head = j->whole.mean[1] > 0 ? s->mean[1] / j->whole.mean[1] : base;

    if (j->whole.mean[0] <= 0)
        base = head;

    *share = base > head ? base : head;
    return k->is_judged && k->is == key && !k->is_folded &&
           *share >= j->m->flags->smallest &&
           (base < NEARLY_ALL || head < NEARLY_ALL);
}

/* Growth as it was measured, with a standard error on top. */
static double
growth_with_error(const struct cpprof__gate_sides *s)
{
    double d = s->mean[1] - s->mean[0] + cpprof__gate_welch(s, 0).se;

    return s->mean[0] > 0 ? d / s->mean[0] : HUGE_VAL;
}

static struct cpprof__gate_row
new_row(uint32_t key, const struct cpprof__gate_sides *s)
{
    return (struct cpprof__gate_row){.key = key,
                                     .base = s->mean[0],
                                     .head = s->mean[1],
                                     .sides = *s,
                                     .share = 1,
                                     .with_machine = -HUGE_VAL,
                                     .must_be_sure = true,
                                     .because = CPPROF__GATE_NONE,
                                     .node = CPPROF__GATE_NONE};
}

static bool
add_row(struct judge *j, size_t key, const double *values)
{
    size_t n = j->m->runs.n, i;
    struct cpprof__gate_sides s, as_it_is;
    struct cpprof__gate_row *row;
    double *x, share;

    if (!CPPROF__ARRAY_ROOM(&j->x, n))
        return false;
    x = j->x.at + j->x.n;
    for (i = 0; i < n; i++)
        x[i] = values[i] / j->factor[i];
    s = cpprof__gate_sides(x, j->m->n_base, j->m->n_head);
    as_it_is = cpprof__gate_sides(values, j->m->n_base, j->m->n_head);
    if (!is_tested(j, key, &s, &share))
        return true;
    row = CPPROF__ARRAY_ADD(&j->r->rows);
    if (!row)
        return false;
    j->x.n += n;
    *row = new_row((uint32_t)key, &s);
    row->share = share;
    row->with_machine = growth_with_error(&as_it_is);
    row->must_be_sure = share >= j->m->flags->sure;
    return true;
}

static bool
find_rows(struct judge *j)
{
    bool flat = j->m->flags->flat && j->m->flags->by != CPPROF__GATE_LABEL;
    const double *values = flat ? j->v->flat : j->v->cum;
    size_t k;

    for (k = 0; k < j->v->n_keys; k++)
        if (!add_row(j, k, values + k * j->m->runs.n))
            return false;
    return true;
}

/* The difference that a row can be told from none with n runs of each side, or
 * more where it has more, if they scatter as those that are there; with a
 * standard error on top, so that it mostly is. */
static double
told_with(const struct cpprof__gate_row *row, double n, double limit)
{
    struct cpprof__gate_sides s = row->sides;
    double pooled = cpprof__gate_pooled(&s);
    struct cpprof__gate_error error;
    int i;

    for (i = 0; i < 2; i++) {
        double df = s.n[i] - 1, own = df > 0 ? s.squares[i] / df : pooled;

        s.n[i] = s.n[i] > n ? s.n[i] : n;
        s.squares[i] = own * (s.n[i] - 1);
    }
    error = cpprof__gate_welch(&s, row->typical);
    return error.se * (cpprof__gate_t(limit, error.df) + 1);
}

/* How many runs the side with fewer needs besides, and the other one until it
 * has as many. */
static double
further_runs(const struct cpprof__gate_row *row, double fail_over, double limit)
{
    const double *n = row->sides.n;
    double least = n[0] < n[1] ? n[0] : n[1], more = 1, step;
    double d = row->head - row->base;
    double need = row->base > 0 ? fail_over * row->base - d : 0;

    need = need > d ? need : d;
    if (need <= 0)
        return HUGE_VAL;
    if (n[0] + n[1] < 3)
        return RUNS_OF_ONE;
    /* Up to the first power that does, then back in ever smaller steps. */
    while (more <= CPPROF__GATE_MOST_RUNS &&
           told_with(row, least + more, limit) > need)
        more *= 2;
    for (step = more / 4; more <= CPPROF__GATE_MOST_RUNS && step >= 1;
         step /= 2)
        if (told_with(row, least + more - step, limit) <= need)
            more -= step;
    return more;
}

/* The verdict of a row of which everything else is known. */
static void
decide(const struct judge *j, struct cpprof__gate_row *row, double limit)
{
    double most = j->m->flags->fail_over, d = row->head - row->base;
    double half = row->error.df > 0
                      ? cpprof__gate_t(limit, row->error.df) * row->error.se
                      : HUGE_VAL;

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
    else if (row->high < most && row->with_machine < most)
        row->verdict = CPPROF__GATE_PASS;
    else
        row->verdict = CPPROF__GATE_INCONCLUSIVE;
    if (row->verdict == CPPROF__GATE_INCONCLUSIVE)
        row->n_further = further_runs(row, most, limit);
}

static int
by_rarity(const void *a, const void *b)
{
    const struct cpprof__gate_row *x = a, *y = b;

    if (x->z != y->z)
        return x->z < y->z ? 1 : -1;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* Rows sorted by z: how many are proven. Their false discovery rates, too. */
static size_t
find_proven(struct judge *j)
{
    struct cpprof__gate_row *rows = j->r->rows.at;
    size_t n = j->r->rows.n, n_proven = 0, i;
    double least = 1;

    for (i = n; i-- > 0;) {
        double all = cpprof__gate_expected(&j->chance, rows[i].z);

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
judge_functions(struct judge *j)
{
    struct cpprof__gate_row *rows = j->r->rows.at;
    size_t n = j->r->rows.n, n_proven, i;
    double limit, whole = j->whole.mean[0];

    for (i = 0; i < n; i++) {
        measure(&rows[i], j->typical[i]);
        if (whole > 0)
            rows[i].of_whole = (rows[i].head - rows[i].base) / whole;
    }
    if (n)
        qsort(rows, n, sizeof *rows, by_rarity);
    n_proven = find_proven(j);
    limit = cpprof__gate_limit(&j->chance,
                               j->alpha * (double)(n_proven ? n_proven : 1));
    for (i = 0; i < n; i++)
        decide(j, &rows[i], limit);
    if (n)
        qsort(rows, n, sizeof *rows, by_importance);
}

/* What all functions of a run have, as it is or without the machine. */
static bool
sum_up(const struct judge *j, const double *factor,
       struct cpprof__gate_sides *sides)
{
    size_t n = j->m->runs.n, i;
    double *x = calloc(n + 1, sizeof *x);

    for (i = 0; x && i < n; i++)
        x[i] = j->m->runs.at[i].total / j->m->runs.at[i].work /
               (factor ? factor[i] : 1);
    if (x)
        *sides = cpprof__gate_sides(x, j->m->n_base, j->m->n_head);
    free(x);
    return x != NULL;
}

/* The whole is compared as it is: its noise is what the machine does. */
static bool
judge_whole(struct judge *j)
{
    double alpha = j->m->flags->alpha / 10;
    struct cpprof__gate_sides s;
    struct cpprof__gate_row row;

    if (!sum_up(j, NULL, &s) || !CPPROF__ARRAY_ROOM(&j->r->rows, 1))
        return false;
    row = new_row(CPPROF__GATE_NONE, &s);
    measure(&row, s.mean[0] * j->quantum);
    row.p = row.q = cpprof__gate_tail(row.z);
    row.is_proven = row.p <= alpha;
    decide(j, &row, cpprof__gate_deviate(alpha));
    row.of_whole = row.growth;
    memmove(j->r->rows.at + 1, j->r->rows.at,
            j->r->rows.n++ * sizeof *j->r->rows.at);
    j->r->rows.at[0] = row;
    return true;
}

/* ---------------------------------------------------------------- all ---- */

/* Where nothing is large enough to be waited for, the largest is: to know
 * nothing is not to pass. */
static void
wait_for_largest(struct cpprof__gate_result *r)
{
    double largest = 0;
    size_t i;

    for (i = 0; i < r->rows.n; i++) {
        if (r->rows.at[i].must_be_sure)
            return;
        if (r->rows.at[i].share > largest)
            largest = r->rows.at[i].share;
    }
    for (i = 0; i < r->rows.n; i++)
        r->rows.at[i].must_be_sure = r->rows.at[i].share >= largest;
    r->least_sure = largest;
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
judge_all(struct judge *j)
{
    const struct cpprof__gate_model *m = j->m;
    struct cpprof__gate_result *r = j->r;
    double work = 0;
    size_t i;

    for (i = 0; i < m->runs.n; i++)
        work += m->runs.at[i].work / (double)m->runs.n;
    j->quantum = m->quantum / work;
    /* Shares of the whole have no speed of the machine in them. */
    r->has_whole = !m->flags->per || strcmp(m->flags->per, "total") != 0;
    if ((r->has_whole &&
         !cpprof__gate_factor(m, j->v, j->factor, &r->is_relative)) ||
        !sum_up(j, j->factor, &j->whole) || !find_rows(j) || !find_typical(j) ||
        cpprof__gate_chance_make(&j->chance, j->x.at, j->typical, r->rows.n,
                                 m->n_base, m->n_head, j->error) != CPPROF_OK)
        return false;
    r->n_tested = r->rows.n;
    r->n_splits = j->chance.n_splits;
    judge_functions(j);
    return !r->has_whole || judge_whole(j);
}

enum cpprof_status
cpprof__gate_judge(const struct cpprof__gate_model *m,
                   const struct cpprof__gate_values *v,
                   struct cpprof__gate_result *r, struct cpprof_error *error)
{
    struct judge j = {
        .m = m, .v = v, .r = r, .error = error, .alpha = m->flags->alpha * 0.7};
    size_t i;
    bool ok;

    j.factor = calloc(m->runs.n + 1, sizeof *j.factor);
    for (i = 0; j.factor && i < m->runs.n; i++)
        j.factor[i] = 1;
    ok = j.factor && judge_all(&j);
    if (ok) {
        r->least_sure = m->flags->sure;
        wait_for_largest(r);
        conclude(r);
    }
    free(j.factor);
    free(j.typical);
    cpprof__gate_chance_free(&j.chance);
    CPPROF__ARRAY_FREE(&j.x);
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
