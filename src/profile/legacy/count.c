/* SPDX-License-Identifier: MIT */
/*
 * Go's count profiles as text, goroutine and threadcreate and any other name:
 *
 *     goroutine profile: total 3
 *     1 @ 0x43b2f6 0x44a92c
 *     # labels: {"key":"value"}
 *     #   0x43b2f5   main.main+0x1   /src/main.go:60
 *
 * Lines that begin with '#' say again what the addresses say; labels are lost,
 * as in the reference.
 *
 * Source: profile/legacy_profile.go parseGoCount.
 */
#include "base/status.h"
#include "profile/legacy/numbers.h"
#include "profile/legacy/rows.h"

static struct cpprof__pattern header = {"^(\\S+) profile: total \\d+$", NULL};
static struct cpprof__pattern row = {"^(\\d+) @((?: 0x[0-9a-f]+)+)$", NULL};

/* Where the reference gives no reason, neither does this. */
static enum cpprof_status
read_row(struct cpprof__rows *rows, struct cpprof_error *error)
{
    struct cpprof__text found[3];
    int64_t value;

    if (!cpprof__pattern_find(&row, rows->line, found, 3,
                              &rows->maker.failed) ||
        cpprof__parse_int(found[1], 0, &value) ||
        cpprof__rows_stack(rows, found[2], rows->line, NULL) != CPPROF_OK)
        return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                            "malformed profile format");
    cpprof__rows_sample(rows, CPPROF__STACK_RETURN, &value);
    return CPPROF_OK;
}

static void
make_type(struct cpprof__maker *m, struct cpprof__text name)
{
    struct pprof_value_type *type;

    cpprof__make_sample_type(m, "", "count");
    if (m->failed)
        return;
    type = m->p->sample_types.at;
    type->type = cpprof__make_string(m, name.at, name.n);
    m->p->info.period_type = *type;
    m->p->info.period = 1;
}

enum cpprof_status
cpprof__read_count(struct cpprof__rows *rows, bool *recognized,
                   struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    struct cpprof__text found[2];

    while (cpprof__rows_next(rows) && cpprof__is_space_or_comment(rows->line))
        ;
    if (!cpprof__pattern_find(&header, rows->line, found, 2,
                              &rows->maker.failed))
        return CPPROF_OK;
    *recognized = true;
    make_type(&rows->maker, found[1]);
    while (status == CPPROF_OK && cpprof__rows_next(rows)) {
        if (cpprof__is_space_or_comment(rows->line))
            continue;
        if (cpprof__begins(rows->line, "---"))
            break;
        status = read_row(rows, error);
    }
    return status == CPPROF_OK ? cpprof__rows_end(rows, error) : status;
}
