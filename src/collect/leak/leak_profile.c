/* SPDX-License-Identifier: MIT */
/*
 * The profile heapleak: what is lost, by the stack that allocated it and
 * whether it is lost directly; with the age of the oldest block of each.
 *
 * Writing searches, as writing Go's goroutineleak does; the count is that of
 * the last search.
 */
#include "arch/clock.h"
#include "base/status.h"
#include "base/writer.h"
#include "collect/heap/heap_profile.h"
#include "collect/leak/leak.h"
#include "collect/registry/registry.h"
#include "own/memory.h"
#include "own/sort.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Samples of one stack, label set and kind. */
struct record {
    uint32_t stack, labels;
    bool is_direct;
    uint64_t objects, bytes; /* in fractions */
    uint32_t oldest_s;
};

struct records {
    struct record *records;
    size_t n;
    struct cpprof__leaks leaks;
};

static size_t last_count;

/* ---- records ----------------------------------------------------------- */

/* Those of a block that is still the one that was found. */
static bool
read_lost(const struct cpprof__lost *lost, uint32_t now_s,
          struct record *record)
{
    const struct cpprof__heap *heap = &cpprof__heap;
    struct cpprof__heap_block block;
    struct cpprof__heap_bucket bucket;

    if (!cpprof__heap_read_block(heap, lost->number, &block) ||
        load_acquire(&heap->blocks[lost->number].use) != lost->use ||
        !cpprof__heap_read_bucket(heap, block.bucket, &bucket))
        return false;
    *record = (struct record){
        .stack = bucket.stack,
        .labels = bucket.labels,
        .is_direct = lost->is_direct,
        .objects = block.weight,
        .bytes = block.weight * block.bytes,
        .oldest_s = now_s - load_relaxed(&heap->born_s[lost->number]),
    };
    return true;
}

static int
by_stack(const void *a, const void *b)
{
    const struct record *x = a, *y = b;

    if (x->stack != y->stack)
        return x->stack < y->stack ? -1 : 1;
    if (x->labels != y->labels)
        return x->labels < y->labels ? -1 : 1;
    return y->is_direct - x->is_direct;
}

static int
by_bytes(const void *a, const void *b)
{
    const struct record *x = a, *y = b;

    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return by_stack(a, b);
}

static void
join(struct records *r)
{
    size_t i, n = 0;

    cpprof__sort(r->records, r->n, sizeof *r->records, by_stack);
    for (i = 0; i < r->n; i++) {
        struct record *last = n ? &r->records[n - 1] : NULL;

        if (!last || by_stack(last, &r->records[i])) {
            r->records[n++] = r->records[i];
            continue;
        }
        last->objects += r->records[i].objects;
        last->bytes += r->records[i].bytes;
        if (r->records[i].oldest_s > last->oldest_s)
            last->oldest_s = r->records[i].oldest_s;
    }
    r->n = n;
    cpprof__sort(r->records, n, sizeof *r->records, by_bytes);
}

static enum cpprof_status
take_records(struct records *r, struct cpprof_error *error)
{
    uint32_t now_s =
        (uint32_t)(cpprof__now_ns(CLOCK_MONOTONIC_COARSE) / CPPROF__NS_PER_S);
    enum cpprof_status status = cpprof__leaks_find(&r->leaks, error);
    size_t i;

    r->n = 0;
    if (status != CPPROF_OK)
        return status;
    r->records = cpprof__calloc(r->leaks.n_lost + 1, sizeof *r->records);
    if (!r->records) {
        cpprof__leaks_free(&r->leaks);
        return cpprof__fail_nomem(error);
    }
    for (i = 0; i < r->leaks.n_lost; i++)
        r->n += read_lost(&r->leaks.lost[i], now_s, &r->records[r->n]);
    store_relaxed(&last_count, r->n);
    join(r);
    return CPPROF_OK;
}

static int64_t
whole(uint64_t fractions)
{
    return (int64_t)((fractions + (1u << (CPPROF__HEAP_FRACTION_BITS - 1))) >>
                     CPPROF__HEAP_FRACTION_BITS);
}

/* ---- writing ----------------------------------------------------------- */

static const struct cpprof__value_type types[] = {{"leak_objects", "count"},
                                                  {"leak_space", "bytes"}};

static void
add_samples(struct cpprof__source_profile *p, const struct records *r)
{
    size_t i;

    for (i = 0; i < r->n; i++)
        cpprof__source_expect(p, r->records[i].stack);
    for (i = 0; i < r->n; i++) {
        const struct record *record = &r->records[i];
        const int64_t values[] = {whole(record->objects), whole(record->bytes)};
        const struct cpprof__builder_label kind = {
            .key = "kind", .str = record->is_direct ? "direct" : "indirect"};
        const struct cpprof__builder_label oldest = {
            .key = "oldest", .num = record->oldest_s, .num_unit = "seconds"};

        cpprof__label_list_add(&p->labels, &kind);
        cpprof__label_list_add(&p->labels, &oldest);
        cpprof__source_add_sample(p, values, record->stack, record->labels,
                                  cpprof__heap_hides);
    }
}

static void
add_comments(struct cpprof__builder *builder, const struct cpprof__leaks *leaks)
{
    char text[320];

    snprintf(text, sizeof text,
             "cpprof: heapleak: no pointer led to what is listed, in private "
             "memory, registers or epoll; %s",
             leaks->is_exact ? "every block was followed"
                             : "blocks were sampled, so this is an estimate "
                               "of what is lost or less");
    cpprof__builder_add_comment(builder, text);
    snprintf(text, sizeof text,
             "cpprof: %" PRIu64 " blocks in %" PRIu64 " MB and %" PRIu64
             " MB of roots were looked at, %" PRIu64 " ms of CPU; %" PRIu64
             " live samples in memory that is not known block by block",
             leaks->n_blocks, leaks->block_bytes >> 20, leaks->root_bytes >> 20,
             leaks->cpu_ns / 1000000, leaks->n_unwalked);
    cpprof__builder_add_comment(builder, text);
    if (!leaks->n_threads)
        return;
    snprintf(text, sizeof text,
             "cpprof: %" PRIu32 " threads stood still for %.1f ms",
             leaks->n_threads, (double)leaks->pause_ns / 1e6);
    cpprof__builder_add_comment(builder, text);
    if (leaks->n_freed) {
        snprintf(text, sizeof text,
                 "cpprof: %" PRIu64 " blocks were left out, because they were "
                 "freed since",
                 leaks->n_freed);
        cpprof__builder_add_comment(builder, text);
    }
}

static enum cpprof_status
write_proto(const struct records *r, const struct cpprof__source *source,
            const struct cpprof_profile_options *options,
            struct cpprof_writer writer, struct cpprof_error *error)
{
    const struct cpprof__profile_head head = {
        .sample_types = types,
        .n_sample_types = 2,
        .period_type = {"space", "bytes"},
        .period = cpprof__heap.head->rate,
        .time_ns = source->time_ns,
        .drop_frames = cpprof__heap_drop_frames,
    };
    struct cpprof__source_profile *p =
        cpprof__source_profile_make(source, options->symbolize, &writer, error);
    enum cpprof_status status;

    if (!p)
        return CPPROF_NOMEM;
    status = cpprof__source_begin_proto(p, &head, writer, error);
    if (status == CPPROF_OK) {
        add_samples(p, r);
        add_comments(p->builder, &r->leaks);
        status = cpprof__builder_end(p->builder, 0, error);
    }
    cpprof__source_profile_free(p);
    return status;
}

/* As Go's profiles of counts; kinds are in the other form. */
static const struct cpprof__records_form form = {
    .name = "heapleak",
    .types = types,
    .n_types = 2,
    .period_type = {"space", "bytes"},
    .period = 1,
    .hides = cpprof__heap_hides,
};

/* From malloc, or NULL. */
static struct cpprof__stack_record *
stack_records(const struct records *r)
{
    struct cpprof__stack_record *records =
        cpprof__calloc(r->n + 1, sizeof *records);
    size_t i;

    for (i = 0; records && i < r->n; i++)
        records[i] = (struct cpprof__stack_record){
            .values = {whole(r->records[i].objects),
                       whole(r->records[i].bytes)},
            .stack = r->records[i].stack,
            .labels = r->records[i].labels};
    return records;
}

static enum cpprof_status
write_text(const struct records *r,
           const struct cpprof_profile_options *options,
           struct cpprof_writer writer, struct cpprof_error *error)
{
    struct cpprof__stack_record *records = stack_records(r);
    enum cpprof_status status;

    if (!records) {
        cpprof__writer_refuse(&writer);
        return cpprof__fail_nomem(error);
    }
    status =
        cpprof__records_write(&form, records, r->n, options, writer, error);
    cpprof__free(records);
    return status;
}

static void
for_stacks(const struct records *r, void (*f)(uint32_t number))
{
    size_t i;

    for (i = 0; i < r->n; i++) {
        f(r->records[i].stack);
        f(r->records[i].labels);
    }
}

static enum cpprof_status
write_builtin(const struct cpprof__builtin *self, struct cpprof_writer writer,
              const struct cpprof_profile_options *options,
              struct cpprof_error *error)
{
    const struct cpprof_heap_options heap = {.size = sizeof heap,
                                             .symbolize = options->symbolize,
                                             .flags = options->flags &
                                                      CPPROF_FLAG_LABELS};
    struct records r = {0};
    struct cpprof__source source;
    enum cpprof_status status;

    (void)self;
    status = cpprof__heap_own_source(&heap, &source, error);
    if (status == CPPROF_OK)
        status = take_records(&r, error);
    if (status != CPPROF_OK) {
        cpprof__writer_refuse(&writer);
        return status;
    }
    for_stacks(&r, cpprof__tree_hold);
    cpprof__tables_resolve(); /* after the records: all they refer to */
    if (options->debug > 0 || options->flags & CPPROF_FLAG_LEGACY)
        status = write_text(&r, options, writer, error);
    else
        status = write_proto(&r, &source, options, writer, error);
    for_stacks(&r, cpprof__tree_drop);
    cpprof__free(r.records);
    cpprof__leaks_free(&r.leaks);
    return status;
}

static enum cpprof_status
take_stack_records(const struct cpprof__builtin *self,
                   const struct cpprof_profile_options *options,
                   uintptr_t above, struct cpprof__stack_record **records,
                   size_t *n, struct cpprof_error *error)
{
    struct records r = {0};
    enum cpprof_status status = take_records(&r, error);

    (void)self;
    (void)options;
    (void)above;
    if (status != CPPROF_OK)
        return status;
    *records = stack_records(&r);
    *n = r.n;
    cpprof__free(r.records);
    cpprof__leaks_free(&r.leaks);
    return *records ? CPPROF_OK : cpprof__fail_nomem(error);
}

static enum cpprof_status
all_records(const struct cpprof__builtin *self, struct cpprof__records *all,
            struct cpprof_error *error)
{
    struct cpprof__stack_record *records;
    enum cpprof_status status;
    size_t i, n;

    status = take_stack_records(self, NULL, 0, &records, &n, error);
    for (i = 0; status == CPPROF_OK && i < n; i++) {
        const int64_t values[CPPROF__RECORD_VALUES] = {records[i].values[0],
                                                       records[i].values[1]};

        cpprof__records_add_stack(all, values, records[i].stack);
    }
    if (status == CPPROF_OK)
        cpprof__free(records);
    return status;
}

static size_t
count(const struct cpprof__builtin *self)
{
    (void)self;
    return load_relaxed(&last_count);
}

const struct cpprof__builtin cpprof__builtin_heapleak = {
    .name = "heapleak",
    .count = count,
    .write = write_builtin,
    .all_records = all_records,
    .form = &form,
    .records = take_stack_records,
};
