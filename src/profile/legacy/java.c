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
    static struct cpprof__pattern attribute = {"([\\w ]+)=([\\w ]+)", NULL};
    enum cpprof_status status = CPPROF_OK;
    struct cpprof__text found[3];

    while (*recognized && status == CPPROF_OK && next_whole_line(rows)) {
        struct cpprof__text line = cpprof__trim(rows->line);

        if (line.n == 0)
            continue;
        if (!cpprof__pattern_find(&attribute, line, found, 3,
                                  &rows->maker.failed)) {
            put_back(rows);
            break;
        }
        *recognized = read_attribute(rows, j, cpprof__trim(found[1]),
                                     cpprof__trim(found[2]), &status, error);
    }
    return status;
}

/* -------------------------------------------------------------- rows ---- */

/* What a sum and a count are of, in the order of the file. */
static struct cpprof__pattern row_pattern = {"(\\d+) +(\\d+) +@ +", NULL};

static enum cpprof_status
unsample_heap(struct cpprof__rows *rows, const struct java *j,
              struct cpprof__text line, int64_t *values,
              struct cpprof_error *error)
{
    if (values[0] == 0)
        return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                            "parsing sample %.*s: second value must be "
                            "non-zero",
                            cpprof__print_n(line), line.at);
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
add_row(struct cpprof__rows *rows, const struct java *j,
        const struct cpprof__text *row, struct cpprof_error *error)
{
    static const char prefix[] = "parsing sample ";
    struct cpprof__text line = cpprof__trim(rows->line);
    enum cpprof_status status;
    int64_t values[2];

    status = cpprof__rows_stack(rows, cpprof__stack_behind(line, row[0]), line,
                                error);
    if (status == CPPROF_OK)
        status = cpprof__read_int(row[2], 0, &values[0], prefix, line, error);
    if (status == CPPROF_OK)
        status = cpprof__read_int(row[1], 0, &values[1], prefix, line, error);
    if (status == CPPROF_OK && j->is_heap)
        status = unsample_heap(rows, j, line, values, error);
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
        struct cpprof__text line = cpprof__trim(rows->line), row[3];

        if (line.n == 0)
            continue;
        if (!cpprof__pattern_find(&row_pattern, line, row, 3,
                                  &rows->maker.failed)) {
            put_back(rows);
            break;
        }
        status = add_row(rows, j, row, error);
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
