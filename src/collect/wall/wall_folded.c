/* SPDX-License-Identifier: MIT */
/*
 * A wall profile as folded stacks: a line for each stack, with names from the
 * root, semicolons between them, and the number of samples. Labels are left
 * out.
 *
 * Stacks of different addresses may have the same names. They become one line,
 * unless more than LINES_BYTES of lines are between them.
 *
 * Source: fgprof (FormatFolded); flamegraph.pl.
 */
#include "base/status.h"
#include "collect/encode/text_profile.h"
#include "collect/wall/wall_counts.h"
#include "own/sort.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tunable: memory for lines that are gathered before they are written. */
#define LINES_BYTES (4u << 20)

struct line {
    size_t at; /* of its names, terminated */
    const char *names;
    int64_t n;
};

struct work {
    struct cpprof__source_profile *p;
    struct cpprof__buffer names;
    struct cpprof__buffer lines; /* struct line */
    bool is_first;               /* name of a line */
};

/* ---- records ---------------------------------------------------------- */

static int
by_stack(const void *a, const void *b)
{
    const struct cpprof__wall_count *x = a, *y = b;

    return (x->stack > y->stack) - (x->stack < y->stack);
}

static int
by_samples(const void *a, const void *b)
{
    const struct cpprof__wall_count *x = a, *y = b;

    if (x->n != y->n)
        return x->n < y->n ? 1 : -1;
    return by_stack(a, b);
}

/* Merge the counts of each stack and put the heaviest first. Returns how many
 * have samples. */
static uint32_t
merge(const struct cpprof__wall_counts *counts)
{
    struct cpprof__wall_count *at = counts->slots;
    uint32_t i, n = counts->n_slots, last = 0;

    if (!n)
        return 0;
    cpprof__sort(at, n, sizeof *at, by_stack);
    for (i = 1; i < n; i++) {
        if (at[i].n && at[last].n && at[i].stack == at[last].stack)
            at[last].n += at[i].n;
        else if (at[i].n)
            at[at[last].n ? ++last : last] = at[i];
    }
    last += at[last].n > 0;
    cpprof__sort(at, last, sizeof *at, by_samples);
    return last;
}

/* ---- lines ------------------------------------------------------------ */

static int
by_names(const void *a, const void *b)
{
    const struct line *x = a, *y = b;

    return strcmp(x->names, y->names);
}

/* Write what is gathered, sorted. */
static void
put_lines(struct work *w)
{
    struct line *lines = (void *)w->lines.data;
    size_t i, n = w->lines.n / sizeof *lines;
    int64_t sum = 0;

    if (w->names.failed || w->lines.failed) {
        cpprof__fail_nomem(&w->p->text.error);
        n = 0;
    }
    for (i = 0; i < n; i++)
        lines[i].names = (const char *)w->names.data + lines[i].at;
    if (n)
        cpprof__sort(lines, n, sizeof *lines, by_names);
    for (i = 0; i < n; i++) {
        sum += lines[i].n;
        if (i + 1 < n && !by_names(&lines[i], &lines[i + 1]))
            continue;
        cpprof__buffer_append(&w->p->text.out, lines[i].names,
                              strlen(lines[i].names));
        cpprof__text_printf(&w->p->text, " %" PRId64 "\n", sum);
        sum = 0;
    }
    w->names.n = 0;
    w->lines.n = 0;
}

/* Write a name without the characters that end a name or a line. */
static void
put_name(struct work *w, const char *name)
{
    if (!w->is_first)
        cpprof__buffer_append(&w->names, ";", 1);
    w->is_first = false;
    for (; *name; name++) {
        char c = (unsigned char)*name < ' ' ? ' ' : *name;

        cpprof__buffer_append(&w->names, c == ';' ? ":" : &c, 1);
    }
}

/* Inlined frames too are written outermost first. */
static void
put_frame(struct work *w, const struct cpprof__builder_frame *frame)
{
    struct cpprof__text_profile *text = &w->p->text;
    size_t n = cpprof__text_resolve(text, frame);
    char address[24];

    if (!n) {
        snprintf(address, sizeof address, "0x%" PRIx64, frame->pc);
        put_name(w, address);
    }
    while (n--)
        put_name(w, text->frames[n].name);
}

static void
put_record(struct work *w, const struct cpprof__wall_count *record)
{
    size_t n = cpprof__source_text_stack(
        w->p, record->stack ? record->stack : CPPROF__SOURCE_LOST);
    const struct line line = {w->names.n, NULL, record->n};

    w->is_first = true;
    while (n--)
        put_frame(w, &w->p->stack[n]);
    cpprof__buffer_append(&w->names, "", 1);
    cpprof__buffer_append(&w->lines, &line, sizeof line);
    if (w->names.n >= LINES_BYTES || w->names.failed || w->lines.failed)
        put_lines(w);
}

enum cpprof_status
cpprof__wall_write_folded(struct cpprof__source_profile *p,
                          const struct cpprof__wall_counts *counts,
                          struct cpprof_writer writer,
                          struct cpprof_error *error)
{
    struct work w = {.p = p};
    enum cpprof_status status;
    uint32_t i, n;

    cpprof__source_begin_text(p, writer);
    n = merge(counts);
    for (i = 0; i < n && p->text.error.status == CPPROF_OK; i++)
        put_record(&w, &counts->slots[i]);
    if (counts->lost_ns)
        put_record(&w, &(struct cpprof__wall_count){.n = 1});
    put_lines(&w);
    status = cpprof__text_end(&p->text, error);
    cpprof__buffer_free(&w.names);
    cpprof__buffer_free(&w.lines);
    return status;
}
