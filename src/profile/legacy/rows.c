/* SPDX-License-Identifier: MIT */
#include "profile/legacy/rows.h"

#include "base/status.h"
#include "profile/legacy/maps.h"
#include "profile/legacy/numbers.h"

static void
swap_profiles(struct pprof_profile *a, struct pprof_profile *b)
{
    struct pprof_profile c = *a;

    *a = *b;
    *b = c;
}

enum cpprof_status
cpprof__read_rows(cpprof__rows_reader *reader, struct cpprof__text data,
                  struct pprof_profile *p, bool *recognized,
                  struct cpprof_error *error)
{
    const char *at = data.n ? data.at : "";
    struct cpprof__rows rows = {.lines = {at, at + data.n}, .line = {at, 0}};
    enum cpprof_status status;

    *recognized = false;
    rows.p = rows.maker.p = cpprof__pprof_make();
    if (!rows.p)
        return cpprof__fail_nomem(error);
    status = reader(&rows, recognized, error);
    if (rows.maker.failed)
        status = cpprof__fail_nomem(error);
    if (status == CPPROF_OK && *recognized)
        swap_profiles(p, rows.p);
    if (status == CPPROF_BAD_DATA && error)
        error->offset = (uint64_t)(rows.line.at - at);
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
