/* SPDX-License-Identifier: MIT */
/*
 * A wall profile as folded stacks: a line for each, names from the root with
 * semicolons between them, and how many samples it has. Labels are left out.
 *
 * Source: fgprof (FormatFolded); flamegraph.pl.
 */
#include "base/status.h"
#include "collect/builder_internal.h"
#include "collect/text_profile.h"
#include "collect/wall_counts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 1026

struct work {
    struct cpprof__text_profile text;
    struct cpprof__builder_frame stack[DEPTH_MAX];
    bool is_first; /* name of a line */
};

/* ---- rows ------------------------------------------------------------- */

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

/* One for each stack, the heaviest first: how many have samples. */
static uint32_t
merge(const struct cpprof__wall_counts *counts)
{
    struct cpprof__wall_count *at = counts->places;
    uint32_t i, n = counts->n_places, last = 0;

    if (!n)
        return 0;
    qsort(at, n, sizeof *at, by_stack);
    for (i = 1; i < n; i++) {
        if (at[i].n && at[last].n && at[i].stack == at[last].stack)
            at[last].n += at[i].n;
        else if (at[i].n)
            at[at[last].n ? ++last : last] = at[i];
    }
    last += at[last].n > 0;
    qsort(at, last, sizeof *at, by_samples);
    return last;
}

/* ---- lines ------------------------------------------------------------ */

/* What ends a name or a line is none of its characters. */
static void
put_name(struct work *w, const char *name)
{
    size_t n = strlen(name), i;

    if (!w->is_first)
        cpprof__buffer_append(&w->text.out, ";", 1);
    w->is_first = false;
    if (!cpprof__buffer_reserve(&w->text.out, n))
        return;
    for (i = 0; i < n; i++) {
        char c = (unsigned char)name[i] < ' ' ? ' ' : name[i];

        cpprof__buffer_append(&w->text.out, c == ';' ? ":" : &c, 1);
    }
}

/* Outermost first, as the whole stack. */
static void
put_frame(struct work *w, const struct cpprof__builder_frame *frame)
{
    struct cpprof__text_profile *t = &w->text;
    size_t mapping =
        frame->mapping == CPPROF__NO_MAPPING ? SIZE_MAX : frame->mapping;
    char address[24];
    size_t n = 0;

    if (frame->pc < CPPROF__FRAME_END) {
        put_name(w, cpprof__own_frame_name(frame->pc));
        return;
    }
    if (t->symbolizer)
        n = t->ops->resolve(t->symbolizer, mapping, frame->pc, t->frames,
                            sizeof t->frames / sizeof *t->frames);
    if (!n) {
        snprintf(address, sizeof address, "0x%" PRIx64, frame->pc);
        put_name(w, address);
    }
    while (n--)
        put_name(w, t->frames[n].name);
}

static void
put_row(struct work *w, const struct cpprof__heap_source *source,
        const struct cpprof__wall_count *row)
{
    size_t n = cpprof__heap_stack(source, row->stack, w->text.mappings,
                                  w->text.n_mappings, w->stack, DEPTH_MAX);

    if (!row->stack)
        w->stack[n++] = (struct cpprof__builder_frame){CPPROF__FRAME_LOST,
                                                       CPPROF__NO_MAPPING};
    else if (!n)
        w->stack[n++] = (struct cpprof__builder_frame){CPPROF__FRAME_BROKEN,
                                                       CPPROF__NO_MAPPING};
    w->is_first = true;
    while (n--)
        put_frame(w, &w->stack[n]);
    cpprof__text_printf(&w->text, " %" PRId64 "\n", row->n);
}

enum cpprof_status
cpprof__wall_write_folded(const struct cpprof__heap_source *source,
                          struct cpprof__symbolizer *symbolizer,
                          const struct cpprof__wall_counts *counts,
                          struct cpprof_writer writer,
                          struct cpprof_error *error)
{
    struct work *w = calloc(1, sizeof *w);
    uint32_t i, n;
    enum cpprof_status status;

    if (!w) {
        if (writer.close)
            writer.close(writer.ctx, 1);
        return cpprof__fail_nomem(error);
    }
    cpprof__text_begin(&w->text, writer, source->ops, symbolizer);
    cpprof__text_add_mappings(&w->text, &source->tables->store);
    n = merge(counts);
    for (i = 0; i < n && w->text.error.status == CPPROF_OK; i++)
        put_row(w, source, &counts->places[i]);
    if (counts->lost_ns)
        put_row(w, source, &(struct cpprof__wall_count){.n = 1});
    status = cpprof__text_end(&w->text, error);
    free(w);
    return status;
}
