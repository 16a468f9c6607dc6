/* SPDX-License-Identifier: MIT */
/*
 * What differences chance makes: the runs are split into two sides in other
 * ways than they were, and the differences of all rows are noted. Where there
 * are too few ways, the normal distribution tells.
 */
#include "cli/gate/gate.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* With fewer ways splits say nothing of what is rare; of more, as many are
 * taken. */
#define FEW_SPLITS  3000
#define MOST_SPLITS 13000
/* Figures of splits that are computed, for all rows: of more rows there are
 * fewer splits. */
#define MOST_FIGURES 40e6
/* Splits say nothing of differences that are less rare. */
#define LEAST_RARE 2.0

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

static double
n_ways(size_t n_base, size_t n_head)
{
    return choose(n_base + n_head, n_head < n_base ? n_head : n_base);
}

static double
most_splits(size_t n_rows)
{
    double most = floor(MOST_FIGURES / (double)(n_rows + 1));

    most = most > MOST_SPLITS ? MOST_SPLITS : most;
    return most < FEW_SPLITS ? FEW_SPLITS : most;
}

size_t
cpprof__gate_n_splits(size_t n_rows, size_t n_base, size_t n_head)
{
    double all = n_ways(n_base, n_head), most = most_splits(n_rows);

    return all < FEW_SPLITS ? 0 : (size_t)((all < most ? all : most) + 0.5);
}

/* The next split in the order of their bits. */
static void
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
        return;
    is_head[i - 1] = 1;
    for (k = i; k < n; k++)
        is_head[k] = k >= n - ones;
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

/* Splits in a fixed order: all, or a sample of them. [split * runs + run] */
static uint8_t *
make_splits(size_t n_splits, size_t n_rows, size_t n_base, size_t n_head)
{
    size_t n = n_base + n_head, i;
    bool is_all = n_ways(n_base, n_head) <= most_splits(n_rows);
    uint8_t *splits = calloc(n_splits + 1, n + 1);
    uint64_t state = 1;

    if (splits)
        memset(splits + n_base, 1, n_head);
    for (i = 1; splits && i < n_splits; i++) {
        uint8_t *at = splits + i * n;

        memcpy(at, at - n, n);
        if (is_all)
            next_split(at, n);
        else
            shuffle(at, n, &state);
    }
    return splits;
}

/* ------------------------------------------------------------ figures ---- */

/* How rare the difference of a row is under one split. `all` is of the row
 * with all runs in base. Which runs are in head is as by chance, so no branch
 * depends on it; squares are needed only where head is above base. */
static double
split_rarity(const double *x, const uint8_t *is_head, double n_head,
             const struct cpprof__gate_sides *all, double typical)
{
    struct cpprof__gate_sides s = {.n = {all->n[0] - n_head, n_head}};
    double head = 0, head_squares = 0, base, d;
    struct cpprof__gate_error error;
    size_t i, n = (size_t)all->n[0];

    /* From the mean of all, so that squares keep their digits. */
    for (i = 0; i < n; i++)
        head += is_head[i] * (x[i] - all->mean[0]);
    if (head <= 0)
        return 0;
    for (i = 0; i < n; i++) {
        d = is_head[i] * (x[i] - all->mean[0]);
        head_squares += d * d;
    }
    base = -head / s.n[0];
    s.squares[0] = all->squares[0] - head_squares - s.n[0] * base * base;
    s.squares[0] = s.squares[0] > 0 ? s.squares[0] : 0;
    head /= n_head;
    s.squares[1] = head_squares - n_head * head * head;
    s.squares[1] = s.squares[1] > 0 ? s.squares[1] : 0;
    error = cpprof__gate_welch(&s, typical);
    d = error.se > 0 ? (head - base) / error.se : 0;
    return d > LEAST_RARE ? cpprof__gate_rarity(d, error.df) : 0;
}

static int
falling(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x > y ? -1 : x < y;
}

enum cpprof_status
cpprof__gate_chance_make(struct cpprof__gate_chance *c, const double *x,
                         const double *typical, size_t n_rows, size_t n_base,
                         size_t n_head, struct cpprof_error *error)
{
    size_t n = n_base + n_head, k, s;
    uint8_t *splits;

    c->n_rows = n_rows;
    c->is_even = n_base == n_head;
    c->n_splits = cpprof__gate_n_splits(n_rows, n_base, n_head);
    splits = make_splits(c->n_splits, n_rows, n_base, n_head);
    for (k = 0; splits && k < n_rows; k++) {
        struct cpprof__gate_sides all = cpprof__gate_sides(x + k * n, n, 0);

        for (s = 0; s < c->n_splits; s++) {
            double z = split_rarity(x + k * n, splits + s * n, (double)n_head,
                                    &all, typical[k]);
            double *kept = z > LEAST_RARE ? CPPROF__ARRAY_ADD(&c->z) : NULL;

            if (z > LEAST_RARE && !kept) {
                free(splits);
                return cpprof__fail_nomem(error);
            }
            if (kept)
                *kept = z;
        }
    }
    if (!splits)
        return cpprof__fail_nomem(error);
    free(splits);
    if (c->z.n)
        qsort(c->z.at, c->z.n, sizeof *c->z.at, falling);
    return CPPROF_OK;
}

double
cpprof__gate_expected(const struct cpprof__gate_chance *c, double z)
{
    double by_theory = (double)c->n_rows * cpprof__gate_tail(z), by_splits;
    size_t low = 0, high = c->z.n;

    /* Of what is not rare splits keep no figures. */
    if (!c->n_splits || z <= LEAST_RARE)
        return by_theory;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (c->z.at[middle] >= z * (1 - 1e-9))
            low = middle + 1;
        else
            high = middle;
    }
    by_splits = (double)low / (double)c->n_splits;
    return c->is_even || by_splits > by_theory ? by_splits : by_theory;
}

double
cpprof__gate_limit(const struct cpprof__gate_chance *c, double n_expected)
{
    double low = 0, high = 40;
    int i;

    for (i = 0; i < 60; i++) {
        double middle = (low + high) / 2;

        *(cpprof__gate_expected(c, middle) > n_expected ? &low : &high) =
            middle;
    }
    return high;
}

double
cpprof__gate_deviate(double tail)
{
    static const struct cpprof__gate_chance one = {.n_rows = 1};

    return cpprof__gate_limit(&one, tail);
}

void
cpprof__gate_chance_free(struct cpprof__gate_chance *c)
{
    CPPROF__ARRAY_FREE(&c->z);
}
