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

/* \S, for which a vertical tab is no space */
static bool
is_of_name(char c)
{
    return c != ' ' && c != '\t' && c != '\n' && c != '\f' && c != '\r';
}

/* \A(\S+) profile: total \d+\z */
static bool
read_header(struct cpprof__text line, struct cpprof__text *name)
{
    *name = cpprof__take_while(&line, is_of_name);
    return name->n && cpprof__take(&line, " profile: total ") &&
           cpprof__take_digits(&line).n && line.n == 0;
}

/* \A(\d+) @(( 0x[0-9a-f]+)+)\z */
static bool
match_row(struct cpprof__text at, struct cpprof__text *count,
          struct cpprof__text *stack)
{
    *count = cpprof__take_digits(&at);
    if (count->n == 0 || !cpprof__take(&at, " @"))
        return false;
    *stack = at;
    while (cpprof__take(&at, " 0x"))
        if (cpprof__take_while(&at, cpprof__is_hex_digit).n == 0)
            return false;
    return stack->n && at.n == 0;
}

/* Where the reference gives no reason, neither does this. */
static enum cpprof_status
read_row(struct cpprof__rows *rows, struct cpprof_error *error)
{
    struct cpprof__text count, stack;
    int64_t value;

    if (!match_row(rows->line, &count, &stack) ||
        cpprof__parse_int(count, 0, &value) ||
        cpprof__rows_stack(rows, stack, rows->line, NULL) != CPPROF_OK)
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
    struct cpprof__text name;

    while (cpprof__rows_next(rows) && cpprof__is_space_or_comment(rows->line))
        ;
    if (!read_header(rows->line, &name))
        return CPPROF_OK;
    *recognized = true;
    make_type(&rows->maker, name);
    while (status == CPPROF_OK && cpprof__rows_next(rows)) {
        if (cpprof__is_space_or_comment(rows->line))
            continue;
        if (cpprof__begins(rows->line, "---"))
            break;
        status = read_row(rows, error);
    }
    return status == CPPROF_OK ? cpprof__rows_end(rows, error) : status;
}
