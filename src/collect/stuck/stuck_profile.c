/* SPDX-License-Identifier: MIT */
/*
 * The profile threadleak: a record for each thread that can never go on, and
 * for those that are suspected of it, with labels that tell which.
 */
#include "collect/stuck/stuck_text.h"
#include "own/memory.h"

#include "arch/atomic.h"
#include "base/status.h"
#include "base/writer.h"
#include "collect/encode/records_profile.h"
#include "collect/labels/labels.h"
#include "collect/registry/registry.h"
#include "collect/signal/tables/label_numbers.h"
#include "collect/store/tables.h"

#include <stdlib.h>

static const struct cpprof__value_type types[] = {{"threadleak", "count"}};
static const struct cpprof__records_form form = {
    .name = "threadleak",
    .types = types,
    .n_types = 1,
    .period_type = {"threadleak", "count"},
    .period = 1,
};

static uint32_t last_count; /* as it was found last */

/* The number of a thread's labels with two of ours; 0: there is no room. */
static uint32_t
labels_of(const struct cpprof__stuck_thread *t, struct cpprof__label_list *its)
{
    const struct cpprof_label ours[] = {
        {.key = "stuck", .str = cpprof__stuck_verdict_name(t->verdict)},
        {.key = "waits for", .str = cpprof__waits_for_name(t->wait.kind)}};
    struct cpprof_labels *set = NULL, *all = NULL;
    uint32_t number = 0;
    size_t i;

    its->n = 0;
    cpprof__record_labels(&cpprof__tables, t->labels, its);
    for (i = 0; i < its->n; i++) {
        const struct cpprof_label one = {.key = its->at[i].key,
                                         .str = its->at[i].str,
                                         .num = its->at[i].num,
                                         .unit = its->at[i].num_unit};

        if (cpprof_labels_merge(set, &one, 1, &all, NULL) == CPPROF_OK) {
            cpprof_labels_free(set);
            set = all;
        }
    }
    if (cpprof_labels_merge(set, ours, 2, &all, NULL) == CPPROF_OK) {
        number = cpprof__label_set_number(&cpprof__tables.tree, &all->set);
        cpprof_labels_free(all);
    }
    cpprof_labels_free(set);
    return number;
}

static size_t
add_records(const struct cpprof__stuck *stuck,
            struct cpprof__stack_record *records)
{
    struct cpprof__label_list its = {.n = 0};
    size_t i, n = 0;

    for (i = 0; i < stuck->n; i++)
        if (stuck->threads[i].verdict)
            records[n++] = (struct cpprof__stack_record){
                .values = {1},
                .stack = stuck->threads[i].stack,
                .labels = labels_of(&stuck->threads[i], &its)};
    cpprof__label_list_free(&its);
    return n;
}

static enum cpprof_status
find(struct cpprof__stuck *stuck, struct cpprof_error *error)
{
    enum cpprof_status status =
        cpprof__stuck_find(CPPROF__STUCK_ALL, NULL, stuck, error);

    if (status == CPPROF_OK)
        store_relaxed(&last_count, (uint32_t)stuck->n_stuck);
    return status;
}

static enum cpprof_status
find_records(struct cpprof_profile_options *options,
             struct cpprof__stack_record **records, size_t *n,
             struct cpprof_error *error)
{
    struct cpprof__stuck stuck;
    enum cpprof_status status = find(&stuck, error);

    if (status != CPPROF_OK)
        return status;
    options->symbolize = cpprof__stuck_names(&stuck, options->symbolize);
    *records = cpprof__calloc(stuck.n_stuck + 1, sizeof **records);
    if (*records)
        *n = add_records(&stuck, *records);
    cpprof__stuck_free(&stuck);
    return *records ? CPPROF_OK : cpprof__fail_nomem(error);
}

static enum cpprof_status
take_records(const struct cpprof__builtin *self,
             const struct cpprof_profile_options *options, uintptr_t above,
             struct cpprof__stack_record **records, size_t *n,
             struct cpprof_error *error)
{
    struct cpprof_profile_options unnamed = {.symbolize =
                                                 CPPROF_SYMBOLIZE_NONE};

    return find_records(&unnamed, records, n, error);
}

static enum cpprof_status
write_text(const struct cpprof_profile_options *options,
           struct cpprof_writer writer, struct cpprof_error *error)
{
    struct cpprof__stuck stuck;
    enum cpprof_status status = find(&stuck, error);

    if (status != CPPROF_OK) {
        cpprof__writer_refuse(&writer);
        return status;
    }
    status = cpprof__stuck_write_text(
        &stuck, cpprof__stuck_names(&stuck, options->symbolize), writer, error);
    cpprof__stuck_free(&stuck);
    return status;
}

static enum cpprof_status
write_profile(const struct cpprof__builtin *self, struct cpprof_writer writer,
              const struct cpprof_profile_options *options,
              struct cpprof_error *error)
{
    struct cpprof_profile_options named = *options;
    struct cpprof__stack_record *records;
    enum cpprof_status status;
    size_t n = 0;

    if (options->debug > 1)
        return write_text(options, writer, error);
    status = find_records(&named, &records, &n, error);
    if (status != CPPROF_OK) {
        cpprof__writer_refuse(&writer);
        return status;
    }
    status = cpprof__records_write(&form, records, n, &named, writer, error);
    cpprof__free(records);
    return status;
}

/* To find it anew takes two looks: as Go's goroutineleak, it is what the last
 * profile found. */
static size_t
count(const struct cpprof__builtin *self)
{
    return load_relaxed(&last_count);
}

static enum cpprof_status
add_all_records(const struct cpprof__builtin *self,
                struct cpprof__records *all_records, struct cpprof_error *error)
{
    struct cpprof__stuck stuck;
    enum cpprof_status status = find(&stuck, error);
    size_t i;

    if (status != CPPROF_OK)
        return status;
    for (i = 0; i < stuck.n; i++)
        if (stuck.threads[i].verdict)
            cpprof__records_add_stack(all_records, NULL,
                                      stuck.threads[i].stack);
    cpprof__stuck_free(&stuck);
    return CPPROF_OK;
}

const struct cpprof__builtin cpprof__builtin_threadleak = {
    .name = "threadleak",
    .count = count,
    .write = write_profile,
    .all_records = add_all_records,
    .form = &form,
    .records = take_records,
};
