/* SPDX-License-Identifier: MIT */
/*
 * The block and the mutex profile as text. Readers multiply a record by the
 * period in the header, but our records have their weights in them. So the
 * header gives the fraction of the mutex profile only if every record can be
 * divided by it, which is so as long as the fraction was never changed.
 * Otherwise the period is 1 and the records are printed as they are.
 *
 * Source: Go runtime/pprof/pprof.go (printCountCycleProfile).
 */
#include "collect/contention/block_profile.h"

#include "base/status.h"
#include "collect/encode/names.h"
#include "collect/encode/record_labels.h"
#include "collect/encode/source.h"
#include "collect/encode/text_profile.h"
#include "collect/signal/waits/waits.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEPTH_MAX 1024

struct work {
    struct cpprof__text_profile text;
    struct cpprof__source source;
    struct cpprof__builder_frame stack[DEPTH_MAX];
    struct cpprof__label_list labels;
};

static bool
is_mutex(const struct cpprof__records_form *form)
{
    return !strcmp(form->name, cpprof__mutex_form.name);
}

/* A number that divides all records: the fraction, or 1. */
static int64_t
period_of(const struct cpprof__records_form *form,
          const struct cpprof__stack_record *records, size_t n)
{
    int64_t period = cpprof__waits_set_mutex_fraction(-1);
    size_t i;

    if (form->source || !is_mutex(form) || period < 2)
        return 1;
    for (i = 0; i < n; i++)
        if (records[i].values[0] % period || records[i].values[1] % period)
            return 1;
    return period;
}

static void
put_head(struct work *w, const struct cpprof__records_form *form,
         int64_t period)
{
    if (is_mutex(form))
        cpprof__text_printf(&w->text,
                            "--- mutex:\ncycles/second=1000000000\n"
                            "sampling period=%" PRId64 "\n",
                            period);
    else
        cpprof__text_printf(&w->text,
                            "--- contention:\ncycles/second=1000000000\n");
}

static void
put_record(struct work *w, const struct cpprof__stack_record *record,
           int64_t period, bool names)
{
    struct cpprof__text_profile *t = &w->text;
    size_t n = cpprof__source_stack(&w->source, record->stack, t->mappings,
                                    t->n_mappings, w->stack, DEPTH_MAX);

    cpprof__text_printf(t, "%" PRId64 " %" PRId64 " @",
                        record->values[1] / period, record->values[0] / period);
    if (!n)
        w->stack[n++] = (struct cpprof__builder_frame){CPPROF__FRAME_BROKEN,
                                                       CPPROF__NO_MAPPING};
    cpprof__text_addresses(t, w->stack, n);
    cpprof__record_labels_text(t, &w->source, record->labels, &w->labels);
    if (names)
        cpprof__text_stack(t, w->stack, n);
}

static void
set_source(struct work *w, const struct cpprof__records_form *form,
           const struct cpprof_profile_options *options)
{
    if (form->source) {
        w->source = *form->source;
        return;
    }
    w->source.tables = &cpprof__tables;
    w->source.pid = (int32_t)getpid();
    w->source.is_self = true;
    if (options->debug > 0 && options->symbolize != CPPROF_SYMBOLIZE_NONE)
        w->source.ops = cpprof__names_load();
}

/* The old form with debug 0 is the form with debug 1, without names. */
enum cpprof_status
cpprof__contention_write(const struct cpprof__records_form *form,
                         struct cpprof__stack_record *records, size_t n,
                         const struct cpprof_profile_options *options,
                         struct cpprof_writer writer,
                         struct cpprof_error *error)
{
    struct work *w = calloc(1, sizeof *w);
    int64_t period = period_of(form, records, n);
    struct cpprof__symbolizer *symbolizer = NULL;
    enum cpprof_status status;
    size_t i;

    if (!w) {
        if (writer.close)
            writer.close(writer.ctx, 1);
        return cpprof__fail_nomem(error);
    }
    set_source(w, form, options);
    if (w->source.ops)
        symbolizer = cpprof__source_symbolizer(&w->source, options->symbolize);
    cpprof__text_begin(&w->text, writer, w->source.ops, symbolizer);
    cpprof__text_add_mappings(&w->text, w->source.tables);
    put_head(w, form, period);
    for (i = 0; i < n && w->text.error.status == CPPROF_OK; i++)
        put_record(w, &records[i], period, options->debug > 0);
    status = cpprof__text_end(&w->text, error);
    if (symbolizer)
        w->source.ops->free(symbolizer);
    cpprof__label_list_free(&w->labels);
    free(w);
    return status;
}
