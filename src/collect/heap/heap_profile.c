/* SPDX-License-Identifier: MIT */
/*
 * Writes a heap profile from records: mappings, samples, lost samples,
 * comments.
 *
 * Records are taken before the tables are resolved, so that every stack has
 * its mappings. The source says whose tables they are; nothing in them is
 * trusted.
 */
#include "collect/heap/heap_profile.h"

#include "arch/atomic.h"
#include "base/status.h"
#include "collect/encode/builder_internal.h"
#include "collect/encode/record_labels.h"
#include "collect/encode/store_numbers.h"
#include "collect/heap/heap_hide.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The most frames of one sample; more are cut off. */
#define DEPTH_MAX 1024

/* A profile being written. */
struct work {
    const struct cpprof__source *source;
    const struct cpprof_heap_options *options;
    struct cpprof__symbolizer *symbolizer; /* or NULL */
    struct cpprof__builder *builder;
    uint32_t *numbers; /* the builder's, of the store's mappings */
    size_t n_numbers;
    struct cpprof__builder_frame stack[DEPTH_MAX];
    struct cpprof__label_list labels;
};

static bool
add_mappings(struct work *w)
{
    cpprof__builder_use_scripts(w->builder, w->source->tables->scripts);
    w->numbers = cpprof__store_numbers(&w->source->tables->store, w->builder,
                                       &w->n_numbers);
    return w->numbers != NULL;
}

static void
set_labels(struct work *w, const struct cpprof__heap_record *record)
{
    const struct cpprof__builder_label bytes = {
        .key = "bytes", .num = record->block_bytes, .num_unit = "bytes"};

    w->labels.n = 0;
    cpprof__label_list_add(&w->labels, &bytes);
    cpprof__record_labels(w->source, record->labels, &w->labels);
    if (w->labels.failed)
        cpprof__builder_fail_nomem(w->builder);
}

static void
add_record(struct work *w, const struct cpprof__heap_record *record)
{
    size_t n = cpprof__source_stack(w->source, record->stack, w->numbers,
                                    w->n_numbers, w->stack, DEPTH_MAX);
    size_t skip =
        cpprof__builder_n_hidden(w->builder, w->stack, n, cpprof__heap_hides);

    set_labels(w, record);
    cpprof__builder_add_sample(w->builder, record->values, w->stack + skip,
                               n - skip, w->labels.at, w->labels.n);
}

static void
add_lost(struct work *w, const struct cpprof__heap_records *records)
{
    struct cpprof__builder_frame frame = {CPPROF__FRAME_LOST,
                                          CPPROF__NO_MAPPING};
    int64_t values[CPPROF__HEAP_VALUES] = {records->lost_objects,
                                           records->lost_bytes};

    if (records->n_lost)
        cpprof__builder_add_sample(w->builder, values, &frame, 1, NULL, 0);
}

static void
add_peak_comment(struct work *w, uint64_t peak_ns)
{
    time_t seconds = (time_t)(peak_ns / 1000000000u);
    char text[128];
    struct tm tm;

    if (!seconds)
        snprintf(text, sizeof text, "cpprof: in use is most now");
    else if (!gmtime_r(&seconds, &tm) ||
             !strftime(text, sizeof text,
                       "cpprof: in use as when it was most, until "
                       "%Y-%m-%d %H:%M:%S UTC",
                       &tm))
        return;
    cpprof__builder_add_comment(w->builder, text);
}

static void
add_losses(struct work *w, const struct cpprof__heap_records *records)
{
    char text[256];

    if (records->n_unfollowed) {
        snprintf(text, sizeof text,
                 "cpprof: %" PRIu64 " samples missing from what is in use",
                 records->n_unfollowed);
        cpprof__builder_add_comment(w->builder, text);
    }
    if (records->n_rates > 0)
        cpprof__builder_add_comment(
            w->builder, "cpprof: the rate was changed meanwhile; every sample "
                        "has the weight of its own rate");
}

static void
add_comments(struct work *w, const struct cpprof__heap_records *records)
{
    const struct cpprof__source *source = w->source;
    char text[256];

    if (source->name)
        snprintf(text, sizeof text, "cpprof: heap %s, one in %" PRId64 " bytes",
                 source->name, records->rate);
    else
        snprintf(text, sizeof text,
                 "cpprof: heap of malloc%s%s, one in %" PRId64
                 " bytes, %" PRId64 " samples lost",
                 source->allocator ? " in " : "",
                 source->allocator ? source->allocator : "", records->rate,
                 records->n_lost);
    cpprof__builder_add_comment(w->builder, text);
    add_losses(w, records);
    if (w->options->flags & CPPROF_FLAG_PEAK)
        add_peak_comment(w, records->peak_ns);
}

static enum cpprof_status
begin(struct work *w, int64_t rate, struct cpprof_writer writer,
      struct cpprof_error *error)
{
    static const struct cpprof__value_type types[CPPROF__HEAP_VALUES] = {
        {"alloc_objects", "count"},
        {"alloc_space", "bytes"},
        {"inuse_objects", "count"},
        {"inuse_space", "bytes"}};
    struct cpprof__profile_head head = {
        .sample_types = types,
        .n_sample_types = CPPROF__HEAP_VALUES,
        .period_type = {"space", "bytes"},
        .period = rate,
        .time_ns = w->source->time_ns,
        .drop_frames = cpprof__heap_drop_frames,
    };

    if (w->options->flags & CPPROF_FLAG_ALLOCS)
        head.default_sample_type = "alloc_space";
    w->symbolizer = cpprof__source_symbolizer(w->source, w->options->symbolize);
    return cpprof__builder_make(&head, writer,
                                w->symbolizer ? w->source->ops : NULL,
                                w->symbolizer, &w->builder, error);
}

static void
add_all(struct work *w, const struct cpprof__heap_records *records)
{
    size_t i;

    if (!add_mappings(w)) {
        cpprof__builder_fail_nomem(w->builder);
        return;
    }
    for (i = 0; i < records->n; i++)
        add_record(w, &records->records[i]);
    add_lost(w, records);
    add_comments(w, records);
}

enum cpprof_status
cpprof__heap_write_proto(const struct cpprof__source *source,
                         const struct cpprof_heap_options *options,
                         const struct cpprof__heap_records *records,
                         struct cpprof_writer writer,
                         struct cpprof_error *error)
{
    struct work *w = calloc(1, sizeof *w);
    enum cpprof_status status;

    if (!w) {
        if (writer.close)
            writer.close(writer.ctx, 1);
        return cpprof__fail_nomem(error);
    }
    w->source = source;
    w->options = options;
    status = begin(w, records->rate, writer, error);
    if (status == CPPROF_OK) {
        add_all(w, records);
        status = cpprof__builder_end(w->builder, source->duration_ns, error);
    }
    if (w->symbolizer)
        w->source->ops->free(w->symbolizer);
    cpprof__label_list_free(&w->labels);
    free(w->numbers);
    free(w);
    return status;
}

/* Until they are written, which may take long. */
static void
for_stacks(const struct cpprof__heap_records *records,
           void (*fn)(uint32_t number))
{
    size_t i;

    for (i = 0; i < records->n; i++) {
        fn(records->records[i].stack);
        fn(records->records[i].labels);
    }
}

enum cpprof_status
cpprof__heap_profile_write(const struct cpprof__source *source,
                           const struct cpprof_heap_options *options,
                           struct cpprof_writer writer,
                           struct cpprof_error *error)
{
    struct cpprof__heap_records records;
    enum cpprof_status status = cpprof__heap_records_take(
        source->heap, source->number, options->flags, &records, error);

    if (status != CPPROF_OK) {
        if (writer.close)
            writer.close(writer.ctx, 1);
        return status;
    }
    if (source->is_self) {
        for_stacks(&records, cpprof__tree_hold);
        cpprof__tables_resolve(); /* after the records: all they refer to */
    }
    if (options->debug > 0 || options->flags & CPPROF_FLAG_LEGACY)
        status =
            cpprof__heap_write_text(source, options, &records, writer, error);
    else
        status =
            cpprof__heap_write_proto(source, options, &records, writer, error);
    if (source->is_self)
        for_stacks(&records, cpprof__tree_drop);
    free(records.records);
    return status;
}
