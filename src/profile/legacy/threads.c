/* SPDX-License-Identifier: MIT */
/*
 * The stacks of all threads, as text:
 *
 *     --- threadz 1 ---
 *
 *     --- Thread 7f794ab90940 (name: main/14748) stack: ---
 *       PC:  0x00bc8f1c: helper(arg *)
 *       0x0040be31: main
 *     --- Thread 7f794964e700 (name: other/14751) stack: ---
 *       [same as previous thread]
 *     --- Memory map: ---
 *
 * One sample per thread; those that are as the one before are counted there.
 * A file that ends without a memory map, or the line "---- no stack trace
 * for ...", is not of this format.
 *
 * Source: profile/legacy_profile.go parseThread.
 */
#include "profile/legacy/rows.h"

static bool
is_thread(struct cpprof__rows *rows, struct cpprof__text line)
{
    static struct cpprof__pattern pattern = {
        "--- Thread [[:xdigit:]]+ \\(name: .*/\\d+\\) stack: ---", NULL};

    return cpprof__pattern_find(&pattern, line, NULL, 0, &rows->maker.failed);
}

/*
 * The addresses of one thread, into the stack; none when it is as the previous
 * one. *line is the first line behind them, or the last of the file.
 */
static enum cpprof_status
read_stack(struct cpprof__rows *rows, struct cpprof__text *line,
           struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    bool is_as_previous = false;

    *line = (struct cpprof__text){rows->line.at, 0};
    while (status == CPPROF_OK && cpprof__rows_next(rows)) {
        *line = cpprof__trim(rows->line);
        if (cpprof__begins(*line, "---"))
            break;
        if (cpprof__contains(*line, "same as previous thread"))
            is_as_previous = true;
        else
            status = cpprof__rows_stack(rows, *line, *line, error);
    }
    if (is_as_previous)
        rows->stack.list.n = 0;
    return status;
}

static void
add_thread(struct cpprof__rows *rows)
{
    struct pprof_profile *p = rows->p;
    int64_t one = 1;

    if (rows->stack.list.n)
        cpprof__rows_sample(rows, CPPROF__STACK_CALLER, &one);
    else if (p->values.n)
        p->values.at[p->values.n - 1]++;
}

/* Thread after thread; `line` is the first one's. */
static enum cpprof_status
read_threads(struct cpprof__rows *rows, struct cpprof__text line,
             bool *recognized, struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;

    while (status == CPPROF_OK && !cpprof__is_maps_sentinel(line) &&
           !cpprof__begins(line, "---- no stack trace for")) {
        *recognized = is_thread(rows, line);
        if (!*recognized)
            return CPPROF_OK;
        status = read_stack(rows, &line, error);
        if (status == CPPROF_OK)
            add_thread(rows);
    }
    return status;
}

/* Skip comments and what stands between the first line and the first thread;
 * *line is where threads begin. */
static bool
read_header(struct cpprof__rows *rows, struct cpprof__text *line)
{
    static struct cpprof__pattern threadz = {"--- threadz \\d+ ---", NULL};

    while (cpprof__rows_next(rows) && cpprof__is_space_or_comment(rows->line))
        ;
    *line = rows->line;
    if (!cpprof__pattern_find(&threadz, *line, NULL, 0, &rows->maker.failed))
        return is_thread(rows, *line);
    while (cpprof__rows_next(rows)) {
        *line = rows->line;
        if (cpprof__is_maps_sentinel(*line) || cpprof__begins(*line, "-"))
            break;
    }
    return true;
}

enum cpprof_status
cpprof__read_threads(struct cpprof__rows *rows, bool *recognized,
                     struct cpprof_error *error)
{
    enum cpprof_status status;
    struct cpprof__text line;

    *recognized = read_header(rows, &line);
    if (!*recognized)
        return CPPROF_OK;
    cpprof__make_sample_type(&rows->maker, "thread", "count");
    cpprof__make_period(&rows->maker, "thread", "count", 1);
    status = read_threads(rows, line, recognized, error);
    if (status == CPPROF_OK && *recognized)
        status = cpprof__rows_end(rows, error);
    if (status == CPPROF_OK)
        cpprof__drop_double_leaves(rows->p);
    return status;
}
