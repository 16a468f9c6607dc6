/* SPDX-License-Identifier: MIT */
/*
 * Writes a wall profile as profile.proto: the counts, the heaviest first, with
 * state and thread labels, and comments about what was looked at.
 */
#include "collect/encode/source.h"
#include "collect/wall/wall_counts.h"
#include "own/sort.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ORDER: enum cpprof__wall_state. */
static const char *const state_names[] = {"running", "sleeping",
                                          "uninterruptible"};

static void
add_count(struct cpprof__source_profile *p,
          const struct cpprof__wall_count *count)
{
    const struct cpprof__builder_label state = {
        .key = "state", .str = state_names[count->state]};
    const int64_t values[2] = {count->n, count->ns};

    cpprof__label_list_add(&p->labels, &state);
    cpprof__source_add_sample(p, values,
                              count->stack ? count->stack : CPPROF__SOURCE_LOST,
                              count->labels, NULL);
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
add_counts(struct cpprof__source_profile *p,
           const struct cpprof__wall_counts *counts)
{
    uint32_t i;

    if (counts->n_slots)
        cpprof__sort(counts->slots, counts->n_slots, sizeof *counts->slots,
                     by_ns);
    for (i = 0; i < counts->n_slots; i++)
        if (counts->slots[i].n)
            cpprof__source_expect(p, counts->slots[i].stack);
    for (i = 0; i < counts->n_slots; i++)
        if (counts->slots[i].n)
            add_count(p, &counts->slots[i]);
    if (counts->lost_ns)
        add_count(p,
                  &(struct cpprof__wall_count){.n = 1, .ns = counts->lost_ns});
}

static void
add_comments(struct cpprof__source_profile *p,
             const struct cpprof__wall_summary *summary)
{
    char text[200];

    snprintf(text, sizeof text,
             "cpprof: wall, %u Hz, %u thread%s, %" PRIu64 " looks, %" PRIu64
             " of them by signal",
             summary->options.rate_hz, summary->n_threads,
             summary->n_threads == 1 ? "" : "s", summary->n_looks,
             summary->n_asked);
    cpprof__builder_add_comment(p->builder, text);
    if (summary->options.flags & CPPROF_FLAG_OFF_CPU)
        cpprof__builder_add_comment(p->builder,
                                    "cpprof: without threads that run");
}

static enum cpprof_status
write_proto(struct cpprof__source_profile *p,
            const struct cpprof__wall_counts *counts,
            const struct cpprof__wall_summary *summary,
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
    enum cpprof_status status =
        cpprof__source_begin_proto(p, &head, writer, error);

    if (status != CPPROF_OK)
        return status;
    add_counts(p, counts);
    add_comments(p, summary);
    return cpprof__builder_end(p->builder, summary->duration_ns, error);
}

enum cpprof_status
cpprof__wall_write(const struct cpprof__wall_counts *counts,
                   const struct cpprof__wall_summary *summary,
                   struct cpprof_writer writer, struct cpprof_error *error)
{
    struct cpprof__source_profile *p;
    enum cpprof_status status;

    if (!summary->source)
        cpprof__tables_resolve();
    p = cpprof__source_profile_make(summary->source, summary->options.symbolize,
                                    &writer, error);
    if (!p)
        return CPPROF_NOMEM;
    status = summary->options.flags & CPPROF_FLAG_COLLAPSED
                 ? cpprof__wall_write_folded(p, counts, writer, error)
                 : write_proto(p, counts, summary, writer, error);
    cpprof__source_profile_free(p);
    return status;
}
