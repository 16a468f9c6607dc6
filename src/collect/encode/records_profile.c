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

#include "collect/encode/source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The source of the form, or this process. names: whether names are wanted. */
static struct cpprof__source_profile *
make_profile(const struct cpprof__records_form *form,
             const struct cpprof_profile_options *options, bool names,
             const struct cpprof_writer *writer, struct cpprof_error *error)
{
    enum cpprof_symbolize symbolize =
        names ? options->symbolize : CPPROF_SYMBOLIZE_NONE;

    return cpprof__source_profile_make(form->source, symbolize, writer, error);
}

static enum cpprof_status
write_proto(const struct cpprof__records_form *form,
            const struct cpprof__stack_record *records, size_t n,
            const struct cpprof_profile_options *options,
            struct cpprof_writer writer, struct cpprof_error *error)
{
    struct cpprof__source_profile *p =
        make_profile(form, options, true, &writer, error);
    struct cpprof__profile_head head = {
        .sample_types = form->types,
        .n_sample_types = form->n_types,
        .period_type = form->period_type,
        .period = form->period,
        .drop_frames = form->drop_frames,
    };
    enum cpprof_status status;
    size_t i;

    if (!p)
        return CPPROF_NOMEM;
    head.time_ns = p->source.time_ns;
    status = cpprof__source_begin_proto(p, &head, writer, error);
    if (status == CPPROF_OK) {
        for (i = 0; i < n; i++)
            cpprof__source_expect(p, records[i].stack);
        for (i = 0; i < n; i++)
            cpprof__source_add_sample(p, records[i].values, records[i].stack,
                                      records[i].labels, form->hides);
        status = cpprof__builder_end(p->builder, form->duration_ns, error);
    }
    cpprof__source_profile_free(p);
    return status;
}

static void
put_total(const struct cpprof__records_form *form,
          struct cpprof__text_profile *text,
          const struct cpprof__stack_record *records, size_t n)
{
    int64_t total = 0;
    size_t i;

    for (i = 0; i < n; i++)
        total += records[i].values[0];
    cpprof__buffer_append(&text->out, form->name, strlen(form->name));
    cpprof__text_printf(text, " profile: total %" PRId64 "\n", total);
}

/* The old form with debug 0 is the form with debug 1, without names. */
static enum cpprof_status
write_text(const struct cpprof__records_form *form,
           const struct cpprof__stack_record *records, size_t n,
           const struct cpprof_profile_options *options,
           struct cpprof_writer writer, struct cpprof_error *error)
{
    bool names = options->debug > 0;
    struct cpprof__source_profile *p =
        make_profile(form, options, names, &writer, error);
    enum cpprof_status status;
    int64_t period = 1;
    size_t i;

    if (!p)
        return CPPROF_NOMEM;
    cpprof__source_begin_text(p, writer);
    p->text.hides = form->hides;
    if (form->put_head)
        period = form->put_head(form, &p->text, records, n);
    else
        put_total(form, &p->text, records, n);
    for (i = 0; i < n && p->text.error.status == CPPROF_OK; i++) {
        const int64_t *values = records[i].values;

        if (form->n_types == 2 && form->put_head)
            cpprof__text_printf(&p->text, "%" PRId64 " ", values[1] / period);
        else if (form->n_types == 2) /* readers of rows skip it */
            cpprof__text_printf(&p->text, "# %s: %" PRId64 " %s\n",
                                form->types[1].type, values[1],
                                form->types[1].unit);
        cpprof__text_printf(&p->text, "%" PRId64 " @", values[0] / period);
        cpprof__source_put_record(
            p, cpprof__source_text_stack(p, records[i].stack),
            records[i].labels, names);
    }
    status = cpprof__text_end(&p->text, error);
    cpprof__source_profile_free(p);
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
    status = (is_text ? write_text : write_proto)(form, records, n, options,
                                                  writer, error);
    if (!form->source)
        for_stacks(records, n, cpprof__tree_drop);
    return status;
}
