/* SPDX-License-Identifier: MIT */
/*
 * When samples were taken, for the timeline of pages: what the samples of each
 * thread add up to, in columns of equal time. Only samples with the label
 * "end_timestamp_ns" have a time; profile.proto has no other place for one.
 *
 * Times are sent as text, for JavaScript's numbers are doubles.
 */
#include "own/memory.h"
#include "report/flame/boxes.h"

#include "base/status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TIME_LABEL "end_timestamp_ns"

/* Tunables. With more threads than rows the rest share the last one; with so
 * many samples for each column most of them have some. */
#define MOST_ROWS    200
#define MOST_COLUMNS 600
#define COLUMN_COUNT 4

/* The labels that name a thread; the first that is there does. */
static const char *const thread_labels[] = {
    "thread name", "thread_name", "thread", "thread id", "thread_id", "tid"};
#define N_THREAD_LABELS (sizeof thread_labels / sizeof thread_labels[0])

struct point {
    int64_t time_ns, value;
    uint32_t row;
};

struct times {
    struct cpprof__report *r;
    uint32_t key, threads[N_THREAD_LABELS]; /* CPPROF__NO_STRING: not there */
    CPPROF__ARRAY(struct point) points;
    struct cpprof__table rows; /* by text of the thread */
    CPPROF__ARRAY(uint32_t) names;
    int64_t first_ns, last_ns;
};

/* ------------------------------------------------------------- points ---- */

/* The text of a label; numbers as they are. */
static uint32_t
text_of(struct pprof_profile *p, const struct pprof_label *label)
{
    char number[24];

    if (label->kind == PPROF_LABEL_TEXT)
        return label->text;
    snprintf(number, sizeof number, "%" PRId64, label->num);
    return cpprof__strings_add_text(&p->strings, number);
}

/* The row of a thread's name. CPPROF__INDEX_NONE: no memory. */
static uint32_t
row_of(struct times *t, uint32_t name)
{
    uint32_t row = CPPROF__INDEX_NONE;

    if (name != CPPROF__NO_STRING && CPPROF__ARRAY_ROOM(&t->names, 1))
        row = cpprof__keys_number(&t->rows, name, 0, 0);
    if (row == t->names.n)
        t->names.at[t->names.n++] = name;
    return row;
}

/* Add a sample if it has a time; false: no memory. */
static bool
add_sample(struct times *t, const struct cpprof__sample *s, int64_t value)
{
    struct pprof_profile *p = t->r->p;
    const struct pprof_label *time = NULL, *thread = NULL;
    size_t n, i, k, best = N_THREAD_LABELS;
    const struct pprof_label *l = cpprof__label_set(&p->labels, s->labels, &n);
    uint32_t row;

    for (i = 0; i < n; i++) {
        if (l[i].key == t->key && l[i].kind != PPROF_LABEL_TEXT)
            time = &l[i];
        for (k = 0; k < best; k++)
            if (l[i].key == t->threads[k]) {
                thread = &l[i];
                best = k;
            }
    }
    if (!time || !value)
        return true;
    row = row_of(t, thread ? text_of(p, thread) : 0);
    if (row == CPPROF__INDEX_NONE || !CPPROF__ARRAY_ROOM(&t->points, 1))
        return false;
    if (!t->points.n || time->num < t->first_ns)
        t->first_ns = time->num;
    if (!t->points.n || time->num > t->last_ns)
        t->last_ns = time->num;
    t->points.at[t->points.n++] = (struct point){time->num, value, row};
    return true;
}

static bool
collect(struct times *t)
{
    struct pprof_profile *p = t->r->p;
    size_t i;

    t->key = cpprof__strings_add_text(&p->strings, TIME_LABEL);
    for (i = 0; i < N_THREAD_LABELS; i++)
        t->threads[i] = cpprof__strings_add_text(&p->strings, thread_labels[i]);
    for (i = 0; i < p->samples.n; i++)
        if (!add_sample(t, &p->samples.at[i],
                        cpprof__values(p, i)[t->r->value]))
            return false;
    return true;
}

/* -------------------------------------------------------------- print ---- */

static void
print_row(struct times *t, const int64_t *sums, size_t row, size_t n_columns)
{
    const struct cpprof__strings *strings = &t->r->p->strings;
    struct cpprof__buffer *out = &t->r->sink.buffer;
    size_t i;

    cpprof__buffer_printf(out, "%s\n[", row ? "," : "");
    if (row == MOST_ROWS - 1 && t->names.n > MOST_ROWS)
        cpprof__json_text(out, "others", strlen("others"));
    else
        cpprof__json_text(out, cpprof__strings_text(strings, t->names.at[row]),
                          cpprof__strings_n(strings, t->names.at[row]));
    for (i = 0; i < n_columns; i++)
        cpprof__buffer_printf(out, ",%" PRId64, sums[row * n_columns + i]);
    cpprof__buffer_printf(out, "]");
    cpprof__sink_mind(&t->r->sink);
}

/* {..., "from": "NS", "step": "NS", "rows": [[thread, value...]...]} */
static bool
print(struct times *t)
{
    struct cpprof__buffer *out = &t->r->sink.buffer;
    uint64_t span = (uint64_t)t->last_ns - (uint64_t)t->first_ns;
    size_t wanted = t->points.n / COLUMN_COUNT + 1;
    uint64_t step = span / (wanted < MOST_COLUMNS ? wanted : MOST_COLUMNS) + 1;
    size_t n_rows = t->names.n < MOST_ROWS ? t->names.n : MOST_ROWS;
    size_t n_columns = t->points.n ? span / step + 1 : 0, i;
    int64_t *sums = cpprof__calloc(n_rows * n_columns + 1, sizeof *sums);

    for (i = 0; sums && i < t->points.n; i++) {
        const struct point *point = &t->points.at[i];
        uint64_t since = (uint64_t)point->time_ns - (uint64_t)t->first_ns;
        size_t row = point->row < n_rows ? point->row : n_rows - 1;
        int64_t *sum = &sums[row * n_columns + since / step];

        *sum = cpprof__add(*sum, point->value);
    }
    cpprof__print_data_head(t->r, out);
    cpprof__buffer_printf(
        out, ",\n\"from\":\"%" PRId64 "\",\"step\":\"%" PRIu64 "\",\"rows\":[",
        t->first_ns, step);
    for (i = 0; sums && i < n_rows; i++)
        print_row(t, sums, i, n_columns);
    cpprof__buffer_printf(out, "]}\n");
    cpprof__free(sums);
    return sums;
}

enum cpprof_status
cpprof__times_view(struct cpprof__report *r)
{
    struct times t = {.r = r};
    bool ok = collect(&t) && print(&t);

    CPPROF__ARRAY_FREE(&t.points);
    CPPROF__ARRAY_FREE(&t.names);
    cpprof__table_free(&t.rows);
    return ok ? CPPROF_OK : cpprof__fail_nomem(r->error);
}
