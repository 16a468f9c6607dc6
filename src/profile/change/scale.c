/* SPDX-License-Identifier: MIT */
/*
 * Multiplying the values of profiles, and making two of them comparable.
 * Source: profile/profile.go ScaleN, profile/merge.go, measurement.go
 * ScaleProfiles.
 */
#include "base/status.h"
#include "own/memory.h"
#include "profile/change/change.h"
#include "profile/model/check.h"
#include "profile/model/unit.h"

#include <string.h>

static const char *
text(const struct pprof_profile *p, uint32_t string)
{
    return cpprof__strings_text(&p->strings, string);
}

/* ----------------------------------------------------------- scaling ---- */

struct scaler {
    struct pprof_profile *p;
    const double *ratios; /* one for each sample type, or NULL: */
    double ratio;         /* this one for all of them */
    size_t next;          /* the sample that is asked about */
};

static double
ratio_of(const struct scaler *s, size_t type)
{
    return s->ratios ? s->ratios[type] : s->ratio;
}

/* A sample is kept if one of its values that are scaled is not 0 afterwards. */
static bool
scale_sample(void *ctx, struct cpprof__sample *sample)
{
    struct scaler *s = ctx;
    int64_t *values = cpprof__values(s->p, s->next++);
    bool keep = false;
    size_t i;

    for (i = 0; i < s->p->sample_types.n; i++) {
        double ratio = ratio_of(s, i);

        if (ratio != 1) {
            values[i] = cpprof__round((double)values[i] * ratio);
            keep |= values[i] != 0;
        }
    }
    return keep;
}

static void
scale(struct scaler *s)
{
    size_t i;

    for (i = 0; i < s->p->sample_types.n; i++)
        if (ratio_of(s, i) != 1)
            break;
    if (i < s->p->sample_types.n)
        cpprof__keep_samples(s->p, scale_sample, s);
    cpprof__debug_check(s->p);
}

void
pprof_scale(struct pprof_profile *p, double ratio)
{
    if (p)
        scale(&(struct scaler){p, NULL, ratio, 0});
}

enum cpprof_status
pprof_scale_types(struct pprof_profile *p, const double *ratios,
                  size_t n_ratios, struct cpprof_error *error)
{
    CPPROF__NEED(error, p && ratios);

    if (n_ratios != p->sample_types.n)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "mismatched scale ratios, got %zu, want %zu",
                            n_ratios, p->sample_types.n);
    scale(&(struct scaler){p, ratios, 1, 0});
    return CPPROF_OK;
}

/* Have both the same types in the same order, maybe in other units? */
static bool
same_types(const struct pprof_profile *a, const struct pprof_profile *b,
           bool any_unit)
{
    size_t i;

    if (a->sample_types.n != b->sample_types.n)
        return false;
    for (i = 0; i < a->sample_types.n; i++) {
        const struct pprof_value_type *x = &a->sample_types.at[i];
        const struct pprof_value_type *y = &b->sample_types.at[i];

        if (strcmp(text(a, x->type), text(b, y->type)) != 0 ||
            (!any_unit && strcmp(text(a, x->unit), text(b, y->unit)) != 0))
            return false;
    }
    return true;
}

static bool
same_period_type(const struct pprof_profile *a, const struct pprof_profile *b)
{
    const struct pprof_value_type *x = &a->info.period_type;
    const struct pprof_value_type *y = &b->info.period_type;

    return strcmp(text(a, x->type), text(b, y->type)) == 0 &&
           strcmp(text(a, x->unit), text(b, y->unit)) == 0;
}

static enum cpprof_status
check_types(const struct pprof_profile *a, const struct pprof_profile *b,
            struct cpprof_error *error)
{
    if (!same_period_type(a, b))
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "incompatible period types %s/%s and %s/%s",
                            text(a, a->info.period_type.type),
                            text(a, a->info.period_type.unit),
                            text(b, b->info.period_type.type),
                            text(b, b->info.period_type.unit));
    if (!same_types(a, b, false))
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "incompatible sample types");
    return CPPROF_OK;
}

/* The sum of value i over all samples. */
static int64_t
sum(const struct pprof_profile *p, size_t i)
{
    uint64_t total = 0;
    size_t sample;

    for (sample = 0; sample < p->samples.n; sample++)
        total += (uint64_t)cpprof__values(p, sample)[i];
    return (int64_t)total;
}

enum cpprof_status
pprof_normalize(struct pprof_profile *p, const struct pprof_profile *base,
                struct cpprof_error *error)
{
    CPPROF__NEED(error, p && base);

    enum cpprof_status status = check_types(p, base, error);
    double *ratios;
    size_t i;

    if (status != CPPROF_OK)
        return status;
    ratios = cpprof__malloc((p->sample_types.n + 1) * sizeof *ratios);
    if (!ratios)
        return cpprof__fail_nomem(error);
    for (i = 0; i < p->sample_types.n; i++) {
        int64_t own = sum(p, i);

        ratios[i] = own ? (double)sum(base, i) / (double)own : 0;
    }
    status = pprof_scale_types(p, ratios, p->sample_types.n, error);
    cpprof__free(ratios);
    return status;
}

/* ------------------------------------------------------ common types ---- */

/* If the default type is gone, the first type becomes the default. */
static void
keep_default(struct pprof_profile *p)
{
    size_t i;

    for (i = 0; i < p->sample_types.n; i++)
        if (p->sample_types.at[i].type == p->info.default_sample_type)
            return;
    p->info.default_sample_type = p->sample_types.at[0].type;
}

/* Make the values of p those at n old columns. */
static bool
keep_types(struct pprof_profile *p, const size_t *columns, size_t n)
{
    size_t n_old = p->sample_types.n, sample, i;
    struct pprof_value_type *types = cpprof__malloc(n * sizeof *types);
    int64_t *values = cpprof__malloc(n * sizeof *values);
    bool ok = types && values;

    for (sample = 0; ok && sample < p->samples.n; sample++) {
        for (i = 0; i < n; i++)
            values[i] = p->values.at[sample * n_old + columns[i]];
        memcpy(p->values.at + sample * n, values, n * sizeof *values);
    }
    for (i = 0; ok && i < n; i++)
        types[i] = p->sample_types.at[columns[i]];
    if (ok) {
        memcpy(p->sample_types.at, types, n * sizeof *types);
        p->sample_types.n = n;
        p->values.n = p->samples.n * n;
        keep_default(p);
    }
    cpprof__free(types);
    cpprof__free(values);
    return ok;
}

static bool
is_identity(const size_t *columns, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (columns[i] != i)
            return false;
    return true;
}

/* More sample types than this are not compared with each other: the work grows
 * with the square, and no profile has more than a dozen. */
#define MOST_TYPES 256

/* Keep the types that both have, in the order of a; of several of one name
 * the first. */
static enum cpprof_status
keep_common_types(struct pprof_profile *a, struct pprof_profile *b,
                  struct cpprof_error *error)
{
    size_t n_a = a->sample_types.n, n_b = b->sample_types.n, n = 0, i;
    size_t *in_a, *in_b;
    enum cpprof_status status = CPPROF_OK;

    if (same_types(a, b, true))
        return CPPROF_OK;
    in_a = cpprof__malloc((n_a + 1) * sizeof *in_a);
    in_b = cpprof__malloc((n_a + 1) * sizeof *in_b);
    for (i = 0; in_a && in_b && i < n_a && n_a + n_b <= 2 * MOST_TYPES; i++) {
        const char *name = text(a, a->sample_types.at[i].type);
        size_t at = cpprof__find_type(b, name);

        if (at < n_b && cpprof__find_type(a, name) == i) {
            in_a[n] = i;
            in_b[n++] = at;
        }
    }
    if (!in_a || !in_b)
        status = cpprof__fail_nomem(error);
    else if (n_a > MOST_TYPES || n_b > MOST_TYPES)
        status = cpprof__fail(error, CPPROF_LIMIT, 0,
                              "more than %d sample types", MOST_TYPES);
    else if (!n)
        status = cpprof__fail(error, CPPROF_INVALID, 0,
                              "profiles have empty common sample type list");
    else if ((n < n_a && !keep_types(a, in_a, n)) ||
             ((n < n_b || !is_identity(in_b, n)) && !keep_types(b, in_b, n)))
        status = cpprof__fail_nomem(error);
    cpprof__free(in_a);
    cpprof__free(in_b);
    return status;
}

/* ------------------------------------------------------ common units ---- */

/* "cpu" and "cpus" are the same type if their units can be converted. */
static bool
is_compatible(const char *type_a, const char *unit_a, const char *type_b,
              const char *unit_b)
{
    size_t a = strlen(type_a), b = strlen(type_b);

    a -= a && type_a[a - 1] == 's';
    b -= b && type_b[b - 1] == 's';
    return a == b && memcmp(type_a, type_b, a) == 0 &&
           cpprof__units_match(unit_a, unit_b);
}

/* One of two types that are converted to a common unit. */
struct side {
    struct pprof_profile *p;
    struct pprof_value_type *type;
    double ratio; /* what its values grow by */
};

static enum cpprof_status
set_unit(struct side *side, const char *unit, struct cpprof_error *error)
{
    uint32_t string = cpprof__strings_add_text(&side->p->strings, unit);

    if (string == CPPROF__NO_STRING)
        return cpprof__fail_nomem(error);
    side->type->unit = string;
    return CPPROF_OK;
}

/* Give both the finer unit of theirs. */
static enum cpprof_status
common_unit(struct side *a, struct side *b, const char *what,
            struct cpprof_error *error)
{
    const char *unit_a = text(a->p, a->type->unit);
    const char *unit_b = text(b->p, b->type->unit);
    const char *type_a = text(a->p, a->type->type);
    const char *type_b = text(b->p, b->type->type);

    a->ratio = b->ratio = 1;
    if (!is_compatible(type_a, unit_a, type_b, unit_b))
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "%s: incompatible types: {%s %s} {%s %s}", what,
                            type_a, unit_a, type_b, unit_b);
    if (strcmp(unit_a, unit_b) == 0)
        return CPPROF_OK;
    cpprof__scale(1, unit_b, unit_a, &b->ratio);
    if (b->ratio < 1) {
        cpprof__scale(1, unit_a, unit_b, &a->ratio);
        b->ratio = 1;
        return set_unit(a, unit_b, error);
    }
    return set_unit(b, unit_a, error);
}

static enum cpprof_status
common_period(struct pprof_profile *a, struct pprof_profile *b,
              struct cpprof_error *error)
{
    struct side sides[2] = {{a, &a->info.period_type, 1},
                            {b, &b->info.period_type, 1}};
    enum cpprof_status status =
        common_unit(&sides[0], &sides[1], "period type", error);
    size_t i;

    for (i = 0; i < 2 && status == CPPROF_OK; i++)
        if (sides[i].ratio != 1)
            sides[i].p->info.period = cpprof__to_int64(
                (double)sides[i].p->info.period * sides[i].ratio);
    return status;
}

static enum cpprof_status
common_units(struct pprof_profile *a, struct pprof_profile *b,
             struct cpprof_error *error)
{
    size_t n = a->sample_types.n, i;
    double *in_a = cpprof__malloc((n + 1) * sizeof *in_a);
    double *in_b = cpprof__malloc((n + 1) * sizeof *in_b);
    enum cpprof_status status;

    status = in_a && in_b ? CPPROF_OK : cpprof__fail_nomem(error);
    for (i = 0; i < n && status == CPPROF_OK; i++) {
        struct side x = {a, &a->sample_types.at[i], 1};
        struct side y = {b, &b->sample_types.at[i], 1};

        status = common_unit(&x, &y, "sample types", error);
        in_a[i] = x.ratio;
        in_b[i] = y.ratio;
    }
    if (status == CPPROF_OK) {
        status = pprof_scale_types(a, in_a, n, error);
        if (status == CPPROF_OK)
            status = pprof_scale_types(b, in_b, n, error);
    }
    cpprof__free(in_a);
    cpprof__free(in_b);
    return status;
}

enum cpprof_status
cpprof__make_compatible(struct pprof_profile *a, struct pprof_profile *b,
                        struct cpprof_error *error)
{
    enum cpprof_status status = keep_common_types(a, b, error);

    if (status == CPPROF_OK)
        status = common_period(a, b, error);
    if (status == CPPROF_OK)
        status = common_units(a, b, error);
    return status == CPPROF_OK ? check_types(a, b, error) : status;
}
