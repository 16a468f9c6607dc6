/* SPDX-License-Identifier: MIT */
/*
 * Contention profiles as text, of C++ programs and of Go's blocks and mutexes:
 *
 *     --- contentionz 1 ---
 *     cycles/second = 3201000000
 *     sampling period = 100
 *     19490304 27 @ 0xbccc97 0xc61202
 *
 * cycles waited and how often, of every period-th event. Java writes the same
 * first line, and attributes that tell it (java.c).
 *
 * Source: profile/legacy_profile.go parseContention.
 */
#include "profile/legacy/numbers.h"
#include "profile/legacy/rows.h"

struct contention {
    int64_t cycles_hz; /* 0: unknown */
    int64_t period;
    int64_t duration_ms;
};

/* "attribute = value"; false for what is not of this format. */
static bool
read_attribute(struct contention *c, struct cpprof__text key,
               struct cpprof__text value)
{
    int64_t *number;

    if (cpprof__is_text(key, "discarded samples"))
        return true;
    if (cpprof__is_text(key, "cycles/second"))
        number = &c->cycles_hz;
    else if (cpprof__is_text(key, "sampling period"))
        number = &c->period;
    else if (cpprof__is_text(key, "ms since reset"))
        number = &c->duration_ms;
    else
        return false;
    return cpprof__parse_int(value, 0, number) == NULL;
}

/* Up to the first line that is no attribute, rows->line then. */
static bool
read_attributes(struct cpprof__rows *rows, struct contention *c)
{
    while (cpprof__rows_next(rows)) {
        struct cpprof__text key = cpprof__trim(rows->line), value;
        const char *equals;

        if (cpprof__is_space_or_comment(key))
            continue;
        equals = memchr(key.at, '=', key.n);
        if (cpprof__begins(key, "---") || !equals)
            return true;
        value = key;
        key.n = (size_t)(equals - key.at);
        cpprof__skip(&value, key.n + 1);
        if (!read_attribute(c, cpprof__trim(key), cpprof__trim(value)))
            return false;
    }
    return true;
}

/* From what was sampled to what happened, and from cycles to nanoseconds. */
static void
unsample(const struct contention *c, int64_t *count, int64_t *cycles)
{
    if (c->period <= 0)
        return;
    if (c->cycles_hz > 0) {
        double ghz = (double)c->cycles_hz / 1e9;

        *cycles = cpprof__truncate((double)*cycles * (double)c->period / ghz);
    }
    *count = cpprof__wrapping_product(*count, c->period);
}

static enum cpprof_status
add_row(struct cpprof__rows *rows, const struct contention *c,
        const struct cpprof__text *row, struct cpprof_error *error)
{
    static const char prefix[] = "malformed sample: ";
    struct cpprof__text line = cpprof__trim(rows->line);
    enum cpprof_status status;
    int64_t values[2];

    status = cpprof__read_int(row[1], 10, &values[1], prefix, line, error);
    if (status == CPPROF_OK)
        status = cpprof__read_int(row[2], 10, &values[0], prefix, line, error);
    if (status == CPPROF_OK)
        status = cpprof__rows_stack(rows, cpprof__stack_behind(line, row[0]),
                                    line, error);
    if (status != CPPROF_OK)
        return status;
    unsample(c, &values[0], &values[1]);
    cpprof__rows_sample(rows, CPPROF__STACK_RETURN, values);
    return CPPROF_OK;
}

/* From rows->line on. */
static enum cpprof_status
read_rows(struct cpprof__rows *rows, const struct contention *c,
          bool *recognized, struct cpprof_error *error)
{
    static struct cpprof__pattern pattern = {"(\\d+) *(\\d+) @", NULL};
    enum cpprof_status status = CPPROF_OK;

    do {
        struct cpprof__text line = cpprof__trim(rows->line);
        struct cpprof__text row[3];

        if (cpprof__begins(line, "---"))
            break;
        if (cpprof__is_space_or_comment(line))
            continue;
        *recognized =
            cpprof__pattern_find(&pattern, line, row, 3, &rows->maker.failed);
        if (*recognized)
            status = add_row(rows, c, row, error);
    } while (*recognized && status == CPPROF_OK && cpprof__rows_next(rows));
    return status;
}

enum cpprof_status
cpprof__read_contention(struct cpprof__rows *rows, bool *recognized,
                        struct cpprof_error *error)
{
    struct contention c = {.period = 1};
    enum cpprof_status status;

    cpprof__rows_next(rows);
    if (!cpprof__begins(rows->line, "--- contentionz ") &&
        !cpprof__begins(rows->line, "--- mutex:") &&
        !cpprof__begins(rows->line, "--- contention:"))
        return CPPROF_OK;
    *recognized = read_attributes(rows, &c);
    if (!*recognized)
        return CPPROF_OK;
    cpprof__make_sample_type(&rows->maker, "contentions", "count");
    cpprof__make_sample_type(&rows->maker, "delay", "nanoseconds");
    cpprof__make_period(&rows->maker, "contentions", "count", c.period);
    rows->p->info.duration_ns =
        cpprof__wrapping_product(c.duration_ms, 1000 * 1000);
    status = read_rows(rows, &c, recognized, error);
    return status == CPPROF_OK && *recognized ? cpprof__rows_end(rows, error)
                                              : status;
}
