/* SPDX-License-Identifier: MIT */
/*
 * Java's heap and contention profiles as text:
 *
 *     --- contentionz 1 ---
 *     format = java
 *     resolution = microseconds
 *     sampling period = 100
 *                14     1 @ 0x0000000d 0x0000000e
 *
 *       0x0000000d com.example.Foo.bar (Foo.java:42)
 *
 * the number of events behind what they add up to, and the table of locations
 * (java_locations.c).
 *
 * Attributes, rows and locations follow each other with nothing between but
 * that a line is not of the kind before; of the last line, where its end is
 * missing, only locations are made.
 *
 * Source: profile/legacy_java_profile.go.
 */
#include "profile/legacy/maps.h"

#include "base/status.h"
#include "profile/legacy/numbers.h"
#include "profile/legacy/rows.h"

#define HEAP_RATE ((int64_t)512 << 10) /* bytes, whatever the file says */

struct java {
    bool is_heap;
    uint32_t bytes_key;
};

/* ------------------------------------------------------------- lines ---- */

/* The next line that has an end; false at the last one's rest. */
static bool
next_whole_line(struct cpprof__rows *rows)
{
    const char *next = rows->lines.next;

    return memchr(next, '\n', (size_t)(rows->lines.end - next)) &&
           cpprof__rows_next(rows);
}

static void
put_back(struct cpprof__rows *rows)
{
    rows->lines.next = rows->line.at;
}

/* -------------------------------------------------------- attributes ---- */

/* [\w ] */
static bool
is_of_attribute(char c)
{
    return c == ' ' || c == '_' || cpprof__is_digit(c) ||
           (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* ([\w ]+)=([\w ]+), the first in the line. */
static bool
find_attribute(struct cpprof__text line, struct cpprof__text *key,
               struct cpprof__text *value)
{
    while (line.n) {
        *key = cpprof__take_while(&line, is_of_attribute);
        if (key->n && cpprof__take(&line, "=")) {
            *value = cpprof__take_while(&line, is_of_attribute);
            if (value->n)
                return true;
        } else if (line.n) {
            cpprof__skip(&line, 1);
        }
    }
    return false;
}

static void
make_types(struct cpprof__maker *m, const struct java *j,
           struct cpprof__text unit)
{
    m->p->sample_types.n = 0;
    cpprof__make_sample_type(m, j->is_heap ? "inuse_objects" : "contentions",
                             "count");
    cpprof__make_sample_type(m, j->is_heap ? "inuse_space" : "delay", "");
    if (!m->failed)
        m->p->sample_types.at[1].unit = cpprof__make_string(m, unit.at, unit.n);
}

/* An attribute that only contention profiles have; false for any other. */
static bool
read_contention(struct cpprof__rows *rows, struct cpprof__text key,
                struct cpprof__text value, enum cpprof_status *status,
                struct cpprof_error *error)
{
    struct cpprof__text line = cpprof__trim(rows->line);
    int64_t number = 0;
    bool is_period = cpprof__is_text(key, "sampling period");

    if (!is_period && !cpprof__is_text(key, "ms since reset"))
        return false;
    *status = cpprof__read_int(value, 0, &number, "failed to parse attribute ",
                               line, error);
    if (is_period)
        cpprof__make_period(&rows->maker, "contentions", "count", number);
    else
        rows->p->info.duration_ns =
            cpprof__wrapping_product(number, 1000 * 1000);
    return true;
}

/* False for what is not of this format. */
static bool
read_attribute(struct cpprof__rows *rows, const struct java *j,
               struct cpprof__text key, struct cpprof__text value,
               enum cpprof_status *status, struct cpprof_error *error)
{
    if (cpprof__is_text(key, "format"))
        return cpprof__is_text(value, "java");
    if (cpprof__is_text(key, "resolution")) {
        make_types(&rows->maker, j, value);
        return true;
    }
    return !j->is_heap && read_contention(rows, key, value, status, error);
}

static enum cpprof_status
read_attributes(struct cpprof__rows *rows, const struct java *j,
                bool *recognized, struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    struct cpprof__text key, value;

    while (*recognized && status == CPPROF_OK && next_whole_line(rows)) {
        struct cpprof__text line = cpprof__trim(rows->line);

        if (line.n == 0)
            continue;
        if (!find_attribute(line, &key, &value)) {
            put_back(rows);
            break;
        }
        *recognized = read_attribute(rows, j, cpprof__trim(key),
                                     cpprof__trim(value), &status, error);
    }
    return status;
}

/* -------------------------------------------------------------- rows ---- */

struct row {
    struct cpprof__text line;
    struct cpprof__text sum, count; /* in the order of the file */
    struct cpprof__text stack;
};

/* " *(\d+) +(\d+) +@ +([ x0-9a-f]*)" beginning with these digits */
static bool
match_row(struct cpprof__text at, void *out)
{
    struct row *row = out;

    row->sum = cpprof__take_digits(&at);
    if (!row->sum.n || !cpprof__take_spaces(&at))
        return false;
    row->count = cpprof__take_digits(&at);
    if (!row->count.n || !cpprof__take_spaces(&at) || !cpprof__take(&at, "@") ||
        !cpprof__take_spaces(&at))
        return false;
    row->stack = cpprof__take_while(&at, cpprof__is_of_stack);
    return true;
}

static enum cpprof_status
unsample_heap(struct cpprof__rows *rows, const struct java *j,
              const struct row *row, int64_t *values,
              struct cpprof_error *error)
{
    if (values[0] == 0)
        return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                            "parsing sample %.*s: second value must be "
                            "non-zero",
                            cpprof__print_n(row->line), row->line.at);
    cpprof__make_number(&rows->maker, j->bytes_key, values[1] / values[0], 0);
    cpprof__scale_heap_sample(&values[0], &values[1], HEAP_RATE);
    return CPPROF_OK;
}

static void
unsample_contention(int64_t period, int64_t *values)
{
    if (period == 0)
        return;
    values[0] = cpprof__wrapping_product(values[0], period);
    values[1] = cpprof__wrapping_product(values[1], period);
}

static enum cpprof_status
add_row(struct cpprof__rows *rows, const struct java *j, const struct row *row,
        struct cpprof_error *error)
{
    static const char prefix[] = "parsing sample ";
    enum cpprof_status status;
    int64_t values[2];

    status = cpprof__rows_stack(rows, row->stack, row->line, error);
    if (status == CPPROF_OK)
        status = cpprof__read_int(row->count, 0, &values[0], prefix, row->line,
                                  error);
    if (status == CPPROF_OK)
        status =
            cpprof__read_int(row->sum, 0, &values[1], prefix, row->line, error);
    if (status == CPPROF_OK && j->is_heap)
        status = unsample_heap(rows, j, row, values, error);
    if (status != CPPROF_OK)
        return status;
    if (!j->is_heap)
        unsample_contention(rows->p->info.period, values);
    cpprof__rows_sample(rows, CPPROF__STACK_EXACT, values);
    return CPPROF_OK;
}

static enum cpprof_status
read_rows(struct cpprof__rows *rows, const struct java *j,
          struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;

    while (status == CPPROF_OK && next_whole_line(rows)) {
        struct row row = {.line = cpprof__trim(rows->line)};

        if (row.line.n == 0)
            continue;
        if (!cpprof__find_row(row.line, match_row, &row)) {
            put_back(rows);
            break;
        }
        status = add_row(rows, j, &row, error);
    }
    return status;
}

/* ------------------------------------------------------------- files ---- */

static bool
read_header(struct cpprof__rows *rows, struct java *j)
{
    struct cpprof__text line;

    if (!next_whole_line(rows))
        return false;
    line = cpprof__trim(rows->line);
    j->is_heap = cpprof__is_text(line, "--- heapz 1 ---");
    return j->is_heap || cpprof__is_text(line, "--- contentionz 1 ---");
}

enum cpprof_status
cpprof__read_java(struct cpprof__rows *rows, bool *recognized,
                  struct cpprof_error *error)
{
    enum cpprof_status status;
    struct java j = {0};

    *recognized = read_header(rows, &j);
    if (!*recognized)
        return CPPROF_OK;
    j.bytes_key = cpprof__make_text(&rows->maker, "bytes");
    status = read_attributes(rows, &j, recognized, error);
    if (status != CPPROF_OK || !*recognized)
        return status;
    status = read_rows(rows, &j, error);
    if (status != CPPROF_OK || rows->maker.failed)
        return status;
    return cpprof__read_java_locations(&rows->lines, rows->p, error);
}
