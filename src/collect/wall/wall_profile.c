/* SPDX-License-Identifier: MIT */
/*
 * Writes a wall profile as profile.proto: the counts, the heaviest first, with
 * state and thread labels, and comments about what was looked at.
 */
#include "arch/atomic.h"
#include "base/status.h"
#include "collect/encode/builder.h"
#include "collect/encode/names.h"
#include "collect/encode/source.h"
#include "collect/wall/wall_counts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DEPTH_MAX 1026

/* ORDER: enum cpprof__wall_state. */
static const char *const state_names[] = {"running", "sleeping",
                                          "uninterruptible"};

struct work {
    struct cpprof__source source; /* the tables, and who has names */
    struct cpprof__symbolizer *symbolizer;
    struct cpprof__builder *builder;
    uint32_t *numbers; /* the builder's, of the store's mappings */
    size_t n_numbers;
    struct cpprof__builder_frame stack[DEPTH_MAX];
    struct cpprof__label_list labels;
};

static bool
add_mappings(struct work *w)
{
    cpprof__builder_use_scripts(w->builder, w->source.tables->scripts);
    w->numbers = cpprof__builder_add_store(w->builder, &w->source.tables->store,
                                           &w->n_numbers);
    return w->numbers != NULL;
}

static void
add_count(struct work *w, const struct cpprof__wall_count *count)
{
    const struct cpprof__builder_label state = {
        .key = "state", .str = state_names[count->state]};
    const int64_t values[2] = {count->n, count->ns};
    size_t n = cpprof__source_stack(&w->source, count->stack, w->numbers,
                                    w->n_numbers, w->stack, DEPTH_MAX);

    if (!count->stack)
        w->stack[n++] = (struct cpprof__builder_frame){CPPROF__FRAME_LOST,
                                                       CPPROF__NO_MAPPING};
    w->labels.n = 0;
    cpprof__record_labels(w->source.tables, count->labels, &w->labels);
    cpprof__label_list_add(&w->labels, &state);
    if (w->labels.failed)
        cpprof__builder_fail_nomem(w->builder);
    cpprof__builder_add_sample(w->builder, values, w->stack, n, w->labels.at,
                               w->labels.n);
}

static int
by_ns(const void *a, const void *b)
{
    const struct cpprof__wall_count *x = a, *y = b;

    if (x->ns != y->ns)
        return x->ns < y->ns ? 1 : -1;
    if (x->stack != y->stack)
        return x->stack < y->stack ? -1 : 1;
    if (x->labels != y->labels)
        return x->labels < y->labels ? -1 : 1;
    return (x->state > y->state) - (x->state < y->state);
}

/* Heaviest first; free slots, which have no time, are last and left out. */
static void
add_counts(struct work *w, const struct cpprof__wall_counts *counts)
{
    uint32_t i;

    if (counts->n_slots)
        qsort(counts->slots, counts->n_slots, sizeof *counts->slots, by_ns);
    for (i = 0; i < counts->n_slots; i++)
        if (counts->slots[i].n)
            add_count(w, &counts->slots[i]);
    if (counts->lost_ns)
        add_count(w,
                  &(struct cpprof__wall_count){.n = 1, .ns = counts->lost_ns});
}

static void
add_comments(struct work *w, const struct cpprof__wall_summary *summary)
{
    char text[200];

    snprintf(text, sizeof text,
             "cpprof: wall, %u Hz, %u thread%s, %" PRIu64 " looks, %" PRIu64
             " of them by signal",
             summary->options.rate_hz, summary->n_threads,
             summary->n_threads == 1 ? "" : "s", summary->n_looks,
             summary->n_asked);
    cpprof__builder_add_comment(w->builder, text);
    if (summary->options.flags & CPPROF_FLAG_OFF_CPU)
        cpprof__builder_add_comment(w->builder,
                                    "cpprof: without threads that run");
}

static void
set_source(struct work *w, const struct cpprof__wall_summary *summary)
{
    if (summary->source) {
        w->source = *summary->source;
        return;
    }
    w->source = (struct cpprof__source){
        .tables = &cpprof__tables, .pid = (int32_t)getpid(), .is_self = true};
    if (summary->options.symbolize != CPPROF_SYMBOLIZE_NONE)
        w->source.ops = cpprof__names_load();
}

/* With who has names. */
static void
open_source(struct work *w, const struct cpprof__wall_summary *summary)
{
    if (!summary->source)
        cpprof__tables_resolve();
    set_source(w, summary);
    if (w->source.ops)
        w->symbolizer =
            cpprof__source_symbolizer(&w->source, summary->options.symbolize);
}

static enum cpprof_status
begin(struct work *w, const struct cpprof__wall_summary *summary,
      struct cpprof_writer writer, struct cpprof_error *error)
{
    bool is_fgprof = summary->options.flags & CPPROF_FLAG_FGPROF;
    const struct cpprof__value_type types[] = {
        {"samples", "count"}, {is_fgprof ? "time" : "wall", "nanoseconds"}};
    const struct cpprof__profile_head head = {
        .sample_types = types,
        .n_sample_types = 2,
        .period_type = {is_fgprof ? "wallclock" : "wall", "nanoseconds"},
        .period = 1000000000 / summary->options.rate_hz,
        .time_ns = summary->time_ns,
    };

    return cpprof__builder_make(&head, writer,
                                w->symbolizer ? w->source.ops : NULL,
                                w->symbolizer, &w->builder, error);
}

static enum cpprof_status
write_proto(struct work *w, const struct cpprof__wall_counts *counts,
            const struct cpprof__wall_summary *summary,
            struct cpprof_writer writer, struct cpprof_error *error)
{
    enum cpprof_status status = begin(w, summary, writer, error);

    if (status != CPPROF_OK)
        return status;
    if (add_mappings(w))
        add_counts(w, counts);
    else
        cpprof__builder_fail_nomem(w->builder);
    add_comments(w, summary);
    return cpprof__builder_end(w->builder, summary->duration_ns, error);
}

enum cpprof_status
cpprof__wall_write(const struct cpprof__wall_counts *counts,
                   const struct cpprof__wall_summary *summary,
                   struct cpprof_writer writer, struct cpprof_error *error)
{
    struct work *w = calloc(1, sizeof *w);
    enum cpprof_status status;

    if (!w) {
        if (writer.close)
            writer.close(writer.ctx, 1);
        return cpprof__fail_nomem(error);
    }
    open_source(w, summary);
    if (summary->options.flags & CPPROF_FLAG_COLLAPSED)
        status = cpprof__wall_write_folded(&w->source, w->symbolizer, counts,
                                           writer, error);
    else
        status = write_proto(w, counts, summary, writer, error);
    if (w->symbolizer)
        w->source.ops->free(w->symbolizer);
    cpprof__label_list_free(&w->labels);
    free(w->numbers);
    free(w);
    return status;
}
