/* SPDX-License-Identifier: MIT */
/*
 * Writes the small profiles (block, mutex, goroutine, threadcreate, the
 * program's own) from records, as profile.proto or as text.
 *
 * Both forms go over the same merged records. The tables that the records
 * refer to are resolved after the records were taken, so that every node has
 * its mapping.
 *
 * Source: Go runtime/pprof/pprof.go (printCountProfile).
 */
#include "collect/encode/records_profile.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "base/status.h"
#include "collect/encode/builder_internal.h"
#include "collect/encode/names.h"
#include "collect/encode/record_labels.h"
#include "collect/encode/source.h"
#include "collect/encode/store_numbers.h"
#include "collect/encode/text_profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The most frames of one sample; more are cut off. */
#define DEPTH_MAX 1024

/* A profile being written, in either form. */
struct work {
    const struct cpprof__records_form *form;
    struct cpprof__source source; /* the tables, and who has names */
    struct cpprof__symbolizer *symbolizer;
    struct cpprof__builder *builder;
    uint32_t *numbers; /* the builder's, of the store's mappings */
    size_t n_numbers;
    struct cpprof__builder_frame stack[DEPTH_MAX];
    struct cpprof__label_list labels;
    struct cpprof__text_profile text;
};

static struct work *
make_work(const struct cpprof__records_form *form,
          const struct cpprof_profile_options *options,
          const struct cpprof_writer *writer, bool names,
          struct cpprof_error *error)
{
    struct work *w = calloc(1, sizeof *w);

    if (!w) {
        if (writer->close)
            writer->close(writer->ctx, 1);
        cpprof__fail_nomem(error);
        return NULL;
    }
    w->form = form;
    if (form->source) {
        w->source = *form->source;
    } else {
        w->source.tables = &cpprof__tables;
        w->source.pid = (int32_t)getpid();
        w->source.is_self = true;
        w->source.time_ns = (int64_t)cpprof__now_ns(CLOCK_REALTIME);
        if (names && options->symbolize != CPPROF_SYMBOLIZE_NONE)
            w->source.ops = cpprof__names_load();
    }
    if (w->source.ops)
        w->symbolizer =
            cpprof__source_symbolizer(&w->source, options->symbolize);
    return w;
}

static void
free_work(struct work *w)
{
    if (w->symbolizer)
        w->source.ops->free(w->symbolizer);
    cpprof__label_list_free(&w->labels);
    free(w->numbers);
    free(w);
}

/* ---- protobuf --------------------------------------------------------- */

static bool
add_mappings(struct work *w)
{
    cpprof__builder_use_scripts(w->builder, w->source.tables->scripts);
    w->numbers = cpprof__store_numbers(&w->source.tables->store, w->builder,
                                       &w->n_numbers);
    return w->numbers != NULL;
}

static void
add_record(struct work *w, const struct cpprof__stack_record *record)
{
    size_t n = cpprof__source_stack(&w->source, record->stack, w->numbers,
                                    w->n_numbers, w->stack, DEPTH_MAX);
    size_t skip =
        cpprof__builder_n_hidden(w->builder, w->stack, n, w->form->hides);

    w->labels.n = 0;
    cpprof__record_labels(&w->source, record->labels, &w->labels);
    if (w->labels.failed)
        cpprof__builder_fail_nomem(w->builder);
    cpprof__builder_add_sample(w->builder, record->values, w->stack + skip,
                               n - skip, w->labels.at, w->labels.n);
}

static void
add_all(struct work *w, const struct cpprof__stack_record *records, size_t n)
{
    size_t i;

    if (!add_mappings(w)) {
        cpprof__builder_fail_nomem(w->builder);
        return;
    }
    for (i = 0; i < n; i++)
        add_record(w, &records[i]);
}

static enum cpprof_status
write_proto(const struct cpprof__records_form *form,
            const struct cpprof__stack_record *records, size_t n,
            const struct cpprof_profile_options *options,
            struct cpprof_writer writer, struct cpprof_error *error)
{
    struct work *w = make_work(form, options, &writer, true, error);
    struct cpprof__profile_head head = {
        .sample_types = form->types,
        .n_sample_types = form->n_types,
        .period_type = form->period_type,
        .period = form->period,
        .drop_frames = form->drop_frames,
    };
    enum cpprof_status status;

    if (!w)
        return CPPROF_NOMEM;
    head.time_ns = w->source.time_ns;
    status = cpprof__builder_make(&head, writer,
                                  w->symbolizer ? w->source.ops : NULL,
                                  w->symbolizer, &w->builder, error);
    if (status == CPPROF_OK) {
        add_all(w, records, n);
        status = cpprof__builder_end(w->builder, form->duration_ns, error);
    }
    free_work(w);
    return status;
}

/* ---- text ------------------------------------------------------------- */

static void
put_count(struct work *w, const struct cpprof__stack_record *record, bool names)
{
    struct cpprof__text_profile *t = &w->text;
    size_t n = cpprof__source_stack(&w->source, record->stack, t->mappings,
                                    t->n_mappings, w->stack, DEPTH_MAX);

    cpprof__text_printf(t, "%" PRId64 " @", record->values[0]);
    if (!n)
        w->stack[n++] = (struct cpprof__builder_frame){CPPROF__FRAME_BROKEN,
                                                       CPPROF__NO_MAPPING};
    cpprof__text_addresses(t, w->stack, n);
    cpprof__record_labels_text(t, &w->source, record->labels, &w->labels);
    if (names)
        cpprof__text_stack(t, w->stack, n);
}

/* The old form with debug 0 is the form with debug 1, without names. */
enum cpprof_status
cpprof__records_write_counts(const struct cpprof__records_form *form,
                             struct cpprof__stack_record *records, size_t n,
                             const struct cpprof_profile_options *options,
                             struct cpprof_writer writer,
                             struct cpprof_error *error)
{
    bool names = options->debug > 0;
    struct work *w = make_work(form, options, &writer, names, error);
    enum cpprof_status status;
    int64_t total = 0;
    size_t i;

    if (!w)
        return CPPROF_NOMEM;
    for (i = 0; i < n; i++)
        total += records[i].values[0];
    cpprof__text_begin(&w->text, writer, w->source.ops, w->symbolizer);
    w->text.hides = form->hides;
    cpprof__text_add_mappings(&w->text, w->source.tables);
    cpprof__buffer_append(&w->text.out, form->name, strlen(form->name));
    cpprof__text_printf(&w->text, " profile: total %" PRId64 "\n", total);
    for (i = 0; i < n && w->text.error.status == CPPROF_OK; i++)
        put_count(w, &records[i], names);
    status = cpprof__text_end(&w->text, error);
    free_work(w);
    return status;
}

/* Until they are written, which may take long. */
static void
for_stacks(const struct cpprof__stack_record *records, size_t n,
           void (*fn)(uint32_t number))
{
    size_t i;

    for (i = 0; i < n; i++) {
        fn(records[i].stack);
        fn(records[i].labels);
    }
}

enum cpprof_status
cpprof__records_write(const struct cpprof__records_form *form,
                      struct cpprof__stack_record *records, size_t n,
                      const struct cpprof_profile_options *options,
                      struct cpprof_writer writer, struct cpprof_error *error)
{
    bool is_text = options->debug > 0 || (options->flags & CPPROF_FLAG_LEGACY);
    enum cpprof_status status;

    n = cpprof__records_merge(form, records, n);
    if (!form->source) {
        for_stacks(records, n, cpprof__tree_hold);
        cpprof__tables_resolve(); /* after the records: all they refer to */
    }
    if (!is_text)
        status = write_proto(form, records, n, options, writer, error);
    else if (form->write_text)
        status = form->write_text(form, records, n, options, writer, error);
    else
        status = cpprof__records_write_counts(form, records, n, options, writer,
                                              error);
    if (!form->source)
        for_stacks(records, n, cpprof__tree_drop);
    return status;
}
