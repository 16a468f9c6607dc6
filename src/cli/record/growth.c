/* SPDX-License-Identifier: MIT */
/*
 * cpprof leaks -growth: which stacks hold more and more, in a series of heap
 * profiles of one program.
 *
 * Of each stack the values are tested for a trend as Mann and Kendall do: S is
 * how many more pairs of profiles rise than fall. Under no trend all orders of
 * the values are equally likely, so the chance of as large an S is counted
 * exactly, and the confidence is what that chance leaves. The speed is the
 * median of all pairs' slopes (Theil and Sen), which a few outliers do not
 * move. Source: Kendall, Rank Correlation Methods, 1970, chapter 5; Sen 1968.
 */
#include "cli/record/record.h"

#include "base/array.h"
#include "base/hash.h"
#include "cli/fetch/fetch.h"
#include "cli/messages.h"

#include <cpprof/pprof/profile.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* More profiles than so many are too many for exact chances in a double. */
#define PROFILES_MAX 150

#define EXIT_GROWTH 1

/* What counts as steady. */
#define STEADY 0.95

struct stack {
    struct cpprof__buffer name; /* frames, from the leaf, with zeros between */
    int64_t *bytes;             /* in each profile */
    size_t last; /* profile that it was seen in, and its sample */
    size_t sample;
    double slope, confidence; /* bytes a second */
};

struct growth {
    struct pprof_profile **profiles;
    double *times_s;
    size_t n;
    size_t n_max;
    CPPROF__ARRAY(struct stack) stacks;
    struct cpprof__index index;
    double chances[PROFILES_MAX * PROFILES_MAX]; /* of orders, by inversions */
};

/* ---- reading ------------------------------------------------------------ */

static struct pprof_profile *
read_one(char *source)
{
    const struct cpprof__fetch_options options = {0};
    struct pprof_profile *profile = NULL;
    struct cpprof__fetch *fetch = NULL;
    struct cpprof_error error;
    const char *url = source;
    enum cpprof_status status =
        cpprof__fetch_begin(&source, 1, &options, &fetch, &error);

    if (status == CPPROF_OK)
        status = fetch ? cpprof__fetch_read(fetch, &profile, &url, &error)
                       : pprof_read_path(source, NULL, &profile, &error);
    cpprof__fetch_free(fetch);
    if (status != CPPROF_OK)
        cpprof__cli_fail("%s: %s", source, error.text);
    return status == CPPROF_OK ? profile : NULL;
}

/* The index of a value type; SIZE_MAX: there is none. */
static size_t
value_of(const struct pprof_profile *profile, const char *name)
{
    const struct pprof_value_type *types = pprof_sample_types(profile);
    size_t i, n = pprof_sample_type_count(profile);

    for (i = 0; i < n; i++)
        if (!strcmp(pprof_text(profile, types[i].type, NULL), name))
            return i;
    return SIZE_MAX;
}

static bool
add_profile(struct growth *g, char *source)
{
    struct pprof_profile *profile = read_one(source);
    struct pprof_info info = {.size = sizeof info};

    if (!profile)
        return false;
    pprof_get_info(profile, &info);
    g->profiles[g->n] = profile;
    g->times_s[g->n++] = (double)info.time_ns * 1e-9;
    if (value_of(profile, "inuse_space") != SIZE_MAX)
        return true;
    cpprof__cli_fail("%s: no heap profile", source);
    return false;
}

/* ---- stacks ------------------------------------------------------------- */

/* Names, or where there are none a file and an offset in it, are the same in
 * all profiles of a program. */
static void
add_frame(const struct pprof_profile *profile, const struct pprof_location *at,
          struct cpprof__buffer *name)
{
    const struct pprof_line *lines = pprof_lines(profile) + at->first_line;
    const struct pprof_mapping *mapping;
    uint32_t i;

    for (i = 0; i < at->n_lines; i++)
        cpprof__buffer_printf(
            name, "%s:%" PRId64 "%c",
            pprof_text(profile,
                       pprof_functions(profile)[lines[i].function].name, NULL),
            lines[i].line, 0);
    if (at->n_lines)
        return;
    if (at->mapping == PPROF_NONE) {
        cpprof__buffer_printf(name, "%" PRIx64 "%c", at->address, 0);
        return;
    }
    mapping = &pprof_mappings(profile)[at->mapping];
    cpprof__buffer_printf(name, "%s+%" PRIx64 "%c",
                          pprof_text(profile, mapping->file, NULL),
                          at->address - mapping->start + mapping->offset, 0);
}

struct wanted {
    const struct growth *g;
    const struct cpprof__buffer *name;
};

static bool
is_same(void *ctx, uint32_t i)
{
    const struct wanted *w = ctx;
    const struct cpprof__buffer *name = &w->g->stacks.at[i].name;

    return name->n == w->name->n && !memcmp(name->data, w->name->data, name->n);
}

/* The stack of that name, which this takes; NULL: no memory. */
static struct stack *
stack_of(struct growth *g, struct cpprof__buffer *name)
{
    uint64_t hash = cpprof__hash_bytes(name->data, name->n, 0);
    struct wanted w = {g, name};
    uint32_t i = cpprof__index_find(&g->index, hash, is_same, &w);
    struct stack *stack;

    if (i != CPPROF__INDEX_NONE) {
        cpprof__buffer_free(name);
        return &g->stacks.at[i];
    }
    stack = CPPROF__ARRAY_ADD(&g->stacks);
    if (!stack)
        return NULL;
    *stack = (struct stack){.name = *name,
                            .bytes = calloc(g->n_max, sizeof *stack->bytes)};
    *name = (struct cpprof__buffer){0};
    return stack->bytes &&
                   cpprof__index_add(&g->index, hash, (uint32_t)g->stacks.n - 1)
               ? stack
               : NULL;
}

static bool
add_samples(struct growth *g, size_t which)
{
    const struct pprof_profile *profile = g->profiles[which];
    struct pprof_sample sample = {.size = sizeof sample};
    size_t i, k, n = pprof_sample_count(profile);
    size_t value = value_of(profile, "inuse_space");

    for (i = 0; i < n; i++) {
        struct cpprof__buffer name = {0};
        struct stack *stack;

        pprof_get_sample(profile, i, &sample);
        if (!sample.values[value] || !sample.n_locations)
            continue;
        for (k = 0; k < sample.n_locations; k++)
            add_frame(profile, &pprof_locations(profile)[sample.locations[k]],
                      &name);
        stack = name.failed ? NULL : stack_of(g, &name);
        cpprof__buffer_free(&name);
        if (!stack)
            return false;
        stack->bytes[which] += sample.values[value];
        stack->last = which;
        stack->sample = i;
    }
    return true;
}

/* ---- the trend ---------------------------------------------------------- */

/* The chance of each number of inversions of n things in any order. */
static void
make_chances(double *chances, size_t n)
{
    size_t k, i, j, most = 0;

    chances[0] = 1;
    for (k = 2; k <= n; k++) {
        double row[PROFILES_MAX * PROFILES_MAX / 2] = {0};

        for (i = 0; i <= most; i++)
            for (j = 0; j < k; j++)
                row[i + j] += chances[i] / (double)k;
        most += k - 1;
        memcpy(chances, row, (most + 1) * sizeof *row);
    }
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Pairs that fall, or stay, are inversions: a tie is never in favour. */
static void
find_trend(const struct growth *g, struct stack *stack, double *slopes)
{
    size_t i, k, n = 0, inversions = 0;
    double chance = 0;

    for (i = 0; i < g->n; i++)
        for (k = i + 1; k < g->n; k++) {
            double by = (double)(stack->bytes[k] - stack->bytes[i]);

            inversions += by <= 0;
            slopes[n++] = by / (g->times_s[k] - g->times_s[i]);
        }
    for (i = 0; i <= inversions; i++)
        chance += g->chances[i];
    qsort(slopes, n, sizeof *slopes, by_value);
    stack->slope =
        n % 2 ? slopes[n / 2] : (slopes[n / 2 - 1] + slopes[n / 2]) / 2;
    stack->confidence = chance < 1 ? 1 - chance : 0;
}

static int
by_slope(const void *a, const void *b)
{
    const struct stack *x = a, *y = b;

    if (x->slope != y->slope)
        return x->slope < y->slope ? 1 : -1;
    return 0;
}

static bool
find_trends(struct growth *g)
{
    double *slopes = malloc(g->n * g->n * sizeof *slopes);
    size_t i;

    for (i = 1; i < g->n; i++)
        if (g->times_s[i] <= g->times_s[i - 1]) {
            cpprof__cli_fail("leaks: profiles have to be in the order of time");
            free(slopes);
            return false;
        }
    make_chances(g->chances, g->n);
    for (i = 0; slopes && i < g->stacks.n; i++)
        find_trend(g, &g->stacks.at[i], slopes);
    qsort(g->stacks.at, g->stacks.n, sizeof *g->stacks.at, by_slope);
    free(slopes);
    return slopes != NULL;
}

/* ---- what is printed ---------------------------------------------------- */

static void
print_stack(const struct growth *g, const struct stack *stack)
{
    const struct pprof_profile *profile = g->profiles[stack->last];
    struct pprof_sample sample = {.size = sizeof sample};
    char where[700], from[32], to[32];

    pprof_get_sample(profile, stack->sample, &sample);
    cpprof__record_describe(profile, sample.locations, sample.n_locations,
                            where, sizeof where);
    cpprof__record_size(stack->bytes[0], from, sizeof from);
    cpprof__record_size(stack->bytes[g->n - 1], to, sizeof to);
    printf("%10.1f KB/h %6.1f%%  %s -> %s  %s\n", stack->slope * 3600 / 1024,
           stack->confidence * 100, from, to, where);
}

/* Returns how many grow steadily, by min_bytes or more in all. */
static size_t
print(const struct growth *g, const struct cpprof__record_options *options)
{
    size_t i, n_steady = 0, n_printed = 0, n_growing = 0;

    printf("%zu profiles in %.0f s, %zu stacks\n", g->n,
           g->times_s[g->n - 1] - g->times_s[0], g->stacks.n);
    for (i = 0; i < g->stacks.n; i++) {
        const struct stack *stack = &g->stacks.at[i];

        if (stack->slope <= 0 ||
            stack->bytes[g->n - 1] - stack->bytes[0] < options->min_bytes)
            continue;
        n_growing++;
        n_steady += stack->confidence >= STEADY;
        if (n_printed++ < (size_t)options->max_lines)
            print_stack(g, stack);
    }
    printf("%zu grow, %zu of them steadily (%.0f%%)\n", n_growing, n_steady,
           STEADY * 100);
    return n_steady;
}

static bool
read_all(struct growth *g, const struct cpprof__record_options *options,
         char **sources, size_t n)
{
    bool is_live = n == 1;
    size_t i;

    g->n_max = is_live ? (size_t)options->n_times : n;
    g->profiles = calloc(g->n_max, sizeof(struct pprof_profile *));
    g->times_s = calloc(g->n_max, sizeof *g->times_s);
    if (!g->profiles || !g->times_s)
        return false;
    for (i = 0; i < g->n_max; i++) {
        if (is_live && i)
            usleep((useconds_t)(options->every_s * 1e6));
        if (!add_profile(g, sources[is_live ? 0 : i]))
            return false;
    }
    for (i = 0; i < g->n; i++)
        if (!add_samples(g, i)) {
            cpprof__cli_fail("leaks: out of memory");
            return false;
        }
    return true;
}

int
cpprof__record_growth(const struct cpprof__record_options *options,
                      char **sources, size_t n)
{
    struct growth *g = calloc(1, sizeof *g);
    int status = CPPROF__EXIT_ERROR;
    size_t i;

    if (n > PROFILES_MAX || options->n_times > PROFILES_MAX ||
        options->n_times < 2)
        status = cpprof__cli_fail("leaks: 2 to %d profiles", PROFILES_MAX);
    else if (g && read_all(g, options, sources, n) && find_trends(g))
        status = print(g, options) ? EXIT_GROWTH : CPPROF__EXIT_OK;
    for (i = 0; g && i < g->n; i++)
        pprof_free(g->profiles[i]);
    for (i = 0; g && i < g->stacks.n; i++) {
        cpprof__buffer_free(&g->stacks.at[i].name);
        free(g->stacks.at[i].bytes);
    }
    if (g) {
        CPPROF__ARRAY_FREE(&g->stacks);
        cpprof__index_free(&g->index);
        free(g->profiles);
        free(g->times_s);
    }
    free(g);
    return status;
}
