/* SPDX-License-Identifier: MIT */
/*
 * What jemalloc (since version 4) dumps, and jeprof reads:
 *
 *     heap_v2/524288
 *       t*: 200: 4629491 [0: 0]
 *       t0: 200: 4629491 [0: 0]
 *     @ 0x7f794f8a2630 0x7f794f8a2d21
 *       t*: 1: 3145728 [0: 0]
 *       t0: 1: 3145728 [0: 0]
 *
 *     MAPPED_LIBRARIES:
 *
 * A stack, then objects and bytes in use, and in brackets those ever allocated,
 * of all threads (t*) and of each one; in the first block those of the whole
 * program. They are what was sampled, every so many bytes on average as the
 * first line says. The brackets are 0 unless the program asked for them with
 * prof_accum.
 *
 * The reference does not read this. What comes out is what it makes of the
 * same numbers in tcmalloc's form. Source: jemalloc's prof_data.c, jeprof.
 */
#include "base/status.h"
#include "profile/legacy/numbers.h"
#include "profile/legacy/rows.h"

enum { IN_USE_COUNT, IN_USE_BYTES, ALLOC_COUNT, ALLOC_BYTES, N_FIELDS };

struct dump {
    struct cpprof__rows *rows;
    int64_t period;
    bool has_alloc;
    uint32_t bytes_key;
};

static enum cpprof_status
bad_line(struct cpprof__text line, struct cpprof_error *error)
{
    return cpprof__fail(error, CPPROF_BAD_DATA, 0, "malformed sample: %.*s",
                        cpprof__print_n(line), line.at);
}

/* "t*: 1: 2 [3: 4]" */
static bool
read_counts(struct dump *d, int64_t *counts)
{
    static struct cpprof__pattern pattern = {
        "^t\\*: *(\\d+): *(\\d+) *\\[ *(\\d+): *(\\d+)\\]$", NULL};
    struct cpprof__text found[1 + N_FIELDS];
    int i;

    if (!cpprof__pattern_find(&pattern, cpprof__trim(d->rows->line), found,
                              1 + N_FIELDS, &d->rows->maker.failed))
        return false;
    for (i = 0; i < N_FIELDS; i++)
        if (cpprof__parse_int(found[1 + i], 10, &counts[i]))
            return false;
    return true;
}

/* "heap_v2/N", and the counts of the whole program behind it. */
static bool
read_head(struct dump *d)
{
    static struct cpprof__pattern pattern = {"^heap_v2/ *(\\d+)$", NULL};
    struct cpprof__text found[2];
    int64_t counts[N_FIELDS];

    if (!cpprof__rows_next(d->rows) ||
        !cpprof__pattern_find(&pattern, cpprof__trim(d->rows->line), found, 2,
                              &d->rows->maker.failed) ||
        cpprof__parse_int(found[1], 10, &d->period) ||
        !cpprof__rows_next(d->rows) || !read_counts(d, counts))
        return false;
    d->has_alloc = counts[ALLOC_COUNT] || counts[ALLOC_BYTES];
    return true;
}

/* A stack's counts, which are for all threads, as a sample. */
static void
add_sample(struct dump *d, const int64_t *counts)
{
    int64_t values[N_FIELDS], *in_use = values;
    int64_t block_bytes = 0;

    if (d->has_alloc) {
        values[0] = counts[ALLOC_COUNT];
        values[1] = counts[ALLOC_BYTES];
        if (values[0])
            block_bytes = values[1] / values[0];
        cpprof__scale_heap_sample(&values[0], &values[1], d->period);
        in_use = values + 2;
    }
    in_use[0] = counts[IN_USE_COUNT];
    in_use[1] = counts[IN_USE_BYTES];
    if (in_use[0])
        block_bytes = in_use[1] / in_use[0];
    cpprof__scale_heap_sample(&in_use[0], &in_use[1], d->period);
    cpprof__make_number(&d->rows->maker, d->bytes_key, block_bytes, 0);
    cpprof__rows_sample(d->rows, CPPROF__STACK_RETURN, values);
}

/* The line is a stack: read it and the counts behind it. */
static enum cpprof_status
read_stack(struct dump *d, struct cpprof__text line, struct cpprof_error *error)
{
    enum cpprof_status status;
    int64_t counts[N_FIELDS];

    status = cpprof__rows_stack(d->rows, line, line, error);
    if (status != CPPROF_OK)
        return status;
    if (!cpprof__rows_next(d->rows))
        return bad_line(line, error);
    if (!read_counts(d, counts))
        return bad_line(cpprof__trim(d->rows->line), error);
    add_sample(d, counts);
    return CPPROF_OK;
}

enum cpprof_status
cpprof__read_jemalloc(struct cpprof__rows *rows, bool *recognized,
                      struct cpprof_error *error)
{
    struct dump d = {.rows = rows};
    enum cpprof_status status = CPPROF_OK;

    if (!read_head(&d))
        return CPPROF_OK;
    *recognized = true;
    d.bytes_key = cpprof__make_heap_types(&rows->maker, d.has_alloc, d.period);
    while (status == CPPROF_OK && cpprof__rows_next(rows)) {
        struct cpprof__text line = cpprof__trim(rows->line);

        if (cpprof__is_maps_sentinel(line))
            break;
        if (cpprof__begins(line, "@"))
            status = read_stack(&d, line, error);
        else if (line.n && line.at[0] != 't' && line.at[0] != '#')
            status = bad_line(line, error);
    }
    return status == CPPROF_OK ? cpprof__rows_end(rows, error) : status;
}
