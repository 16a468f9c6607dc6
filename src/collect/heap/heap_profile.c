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

#include "base/writer.h"
#include "own/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void
add_records(struct cpprof__source_profile *p,
            const struct cpprof__heap_records *records)
{
    const int64_t lost_values[CPPROF__HEAP_VALUES] = {records->lost_objects,
                                                      records->lost_bytes};
    size_t i;

    for (i = 0; i < records->n; i++)
        cpprof__source_expect(p, records->records[i].stack);
    for (i = 0; i < records->n; i++) {
        const struct cpprof__heap_record *record = &records->records[i];
        const struct cpprof__builder_label bytes = {
            .key = "bytes", .num = record->block_bytes, .num_unit = "bytes"};

        cpprof__label_list_add(&p->labels, &bytes);
        cpprof__source_add_sample(p, record->values, record->stack,
                                  record->labels, cpprof__heap_hides);
    }
    if (records->n_lost)
        cpprof__source_add_sample(p, lost_values, CPPROF__SOURCE_LOST, 0, NULL);
}

/* format: of strftime(). */
static void
add_time_comment(struct cpprof__builder *builder, const char *format,
                 uint64_t time_ns)
{
    time_t seconds = (time_t)(time_ns / 1000000000u);
    char text[128];
    struct tm tm;

    if (gmtime_r(&seconds, &tm) && strftime(text, sizeof text, format, &tm))
        cpprof__builder_add_comment(builder, text);
}

static void
add_peak_comment(struct cpprof__builder *builder, uint64_t peak_ns)
{
    if (peak_ns)
        add_time_comment(builder,
                         "cpprof: in use as when it was most, until "
                         "%Y-%m-%d %H:%M:%S UTC",
                         peak_ns);
    else
        cpprof__builder_add_comment(builder, "cpprof: in use is most now");
}

static void
add_comments(struct cpprof__builder *builder,
             const struct cpprof__source *source, uint32_t flags,
             const struct cpprof__heap_records *records)
{
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
    cpprof__builder_add_comment(builder, text);
    if (records->begun_ns)
        add_time_comment(builder,
                         "cpprof: since it was attached, "
                         "%Y-%m-%d %H:%M:%S UTC; blocks that were there before "
                         "are not in it",
                         records->begun_ns);
    if (records->n_unfollowed) {
        snprintf(text, sizeof text,
                 "cpprof: %" PRIu64 " samples missing from what is in use",
                 records->n_unfollowed);
        cpprof__builder_add_comment(builder, text);
    }
    if (records->n_rates > 0)
        cpprof__builder_add_comment(
            builder, "cpprof: the rate was changed meanwhile; every sample "
                     "has the weight of its own rate");
    if (flags & CPPROF_FLAG_PEAK)
        add_peak_comment(builder, records->peak_ns);
}

enum cpprof_status
cpprof__heap_write_proto(const struct cpprof__source *source,
                         const struct cpprof_heap_options *options,
                         const struct cpprof__heap_records *records,
                         struct cpprof_writer writer,
                         struct cpprof_error *error)
{
    static const struct cpprof__value_type types[CPPROF__HEAP_VALUES] = {
        {"alloc_objects", "count"},
        {"alloc_space", "bytes"},
        {"inuse_objects", "count"},
        {"inuse_space", "bytes"}};
    const struct cpprof__profile_head head = {
        .sample_types = types,
        .n_sample_types = CPPROF__HEAP_VALUES,
        .period_type = {"space", "bytes"},
        .period = records->rate,
        .time_ns = source->time_ns,
        .default_sample_type =
            options->flags & CPPROF_FLAG_ALLOCS ? "alloc_space" : NULL,
        .drop_frames = cpprof__heap_drop_frames,
    };
    struct cpprof__source_profile *p =
        cpprof__source_profile_make(source, options->symbolize, &writer, error);
    enum cpprof_status status;

    if (!p)
        return CPPROF_NOMEM;
    status = cpprof__source_begin_proto(p, &head, writer, error);
    if (status == CPPROF_OK) {
        add_records(p, records);
        add_comments(p->builder, source, options->flags, records);
        status = cpprof__builder_end(p->builder, source->duration_ns, error);
    }
    cpprof__source_profile_free(p);
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
        cpprof__writer_refuse(&writer);
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
    cpprof__free(records.records);
    return status;
}
