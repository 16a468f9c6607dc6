/* SPDX-License-Identifier: MIT */
/*
 * Runs one reader on a file, and does for the readers what rows have in common:
 * from the addresses of a line to a sample, from sampled to real allocations,
 * and on to the memory map.
 *
 * Invariants: a profile is handed out only when a reader has recognized its
 * bytes and nothing failed; the stack is empty after each sample.
 */
#include "profile/legacy/rows.h"

#include "base/status.h"
#include "profile/legacy/maps.h"
#include "profile/legacy/numbers.h"

#include <math.h>

enum cpprof_status
cpprof__legacy_try(cpprof__legacy_reader *reader, const char *data, size_t n,
                   struct pprof_profile **out, struct cpprof_error *error)
{
    const char *at = n ? data : "";
    struct cpprof__rows rows = {.lines = {at, at + n}, .line = {at, 0}};
    bool recognized = false;
    enum cpprof_status status;

    rows.p = rows.maker.p = cpprof__pprof_make();
    if (!rows.p)
        return cpprof__fail_nomem(error);
    status = reader(&rows, &recognized, error);
    if (rows.maker.failed)
        status = cpprof__fail_nomem(error);
    if (status == CPPROF_BAD_DATA && error)
        error->offset = (uint64_t)(rows.line.at - at);
    if (status == CPPROF_OK && recognized) {
        *out = rows.p;
        rows.p = NULL;
    }
    pprof_free(rows.p);
    cpprof__maker_free(&rows.maker);
    CPPROF__ARRAY_FREE(&rows.stack.list);
    CPPROF__ARRAY_FREE(&rows.frames);
    return status;
}

bool
cpprof__rows_next(struct cpprof__rows *rows)
{
    if (!rows->maker.failed && cpprof__next_line(&rows->lines, &rows->line))
        return true;
    rows->line = (struct cpprof__text){rows->lines.next, 0};
    return false;
}

enum cpprof_status
cpprof__rows_stack(struct cpprof__rows *rows, struct cpprof__text text,
                   struct cpprof__text line, struct cpprof_error *error)
{
    struct cpprof__text word;

    if (!cpprof__hex_addresses(text, &rows->stack, &word))
        return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                            "malformed sample: %.*s: failed to parse as hex "
                            "64-bit number: %.*s",
                            cpprof__print_n(line), line.at,
                            cpprof__print_n(word), word.at);
    if (rows->stack.nomem)
        rows->maker.failed = true;
    return CPPROF_OK;
}

void
cpprof__rows_sample(struct cpprof__rows *rows, enum cpprof__stack_kind kind,
                    const int64_t *values)
{
    size_t n = rows->stack.list.n, i;

    rows->frames.n = 0;
    rows->stack.list.n = 0;
    if (!CPPROF__ARRAY_ROOM(&rows->frames, n)) {
        rows->maker.failed = true;
        return;
    }
    for (i = 0; i < n; i++) {
        uint64_t address = rows->stack.list.at[i];

        if (kind == CPPROF__STACK_RETURN ||
            (kind == CPPROF__STACK_CALLER && i > 0))
            address--;
        rows->frames.at[i] = cpprof__make_location(&rows->maker, PPROF_NONE,
                                                   address, PPROF_NONE, 0);
    }
    cpprof__make_sample(&rows->maker, rows->frames.at, n, values);
}

enum cpprof_status
cpprof__rows_end(struct cpprof__rows *rows, struct cpprof_error *error)
{
    if (rows->maker.failed)
        return cpprof__fail_nomem(error);
    return cpprof__read_sections(&rows->lines, rows->line, rows->p, error);
}

void
cpprof__drop_double_leaves(struct pprof_profile *p)
{
    size_t i;

    for (i = 0; i < p->samples.n; i++) {
        struct cpprof__sample *s = &p->samples.at[i];
        uint32_t *frames = p->frames.at + s->first_frame;

        if (s->n_frames < 2 || p->locations.at[frames[0]].address !=
                                   p->locations.at[frames[1]].address + 1)
            continue;
        s->n_frames--;
        memmove(frames + 1, frames + 2, (s->n_frames - 1) * sizeof *frames);
    }
}

uint32_t
cpprof__make_heap_types(struct cpprof__maker *m, bool has_alloc, int64_t period)
{
    if (has_alloc) {
        cpprof__make_sample_type(m, "alloc_objects", "count");
        cpprof__make_sample_type(m, "alloc_space", "bytes");
    }
    cpprof__make_sample_type(m, has_alloc ? "inuse_objects" : "objects",
                             "count");
    cpprof__make_sample_type(m, has_alloc ? "inuse_space" : "space", "bytes");
    cpprof__make_period(m, "space", "bytes", period);
    return cpprof__make_text(m, "bytes");
}

void
cpprof__scale_heap_sample(int64_t *count, int64_t *size, int64_t rate)
{
    double mean, scale;

    if (*count == 0 || *size == 0) {
        *count = *size = 0;
        return;
    }
    if (rate <= 1)
        return;
    mean = (double)*size / (double)*count;
    scale = 1 / (1 - exp(-mean / (double)rate));
    *count = cpprof__truncate((double)*count * scale);
    *size = cpprof__truncate((double)*size * scale);
}
