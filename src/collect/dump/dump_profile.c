/* SPDX-License-Identifier: MIT */
/*
 * The profile goroutine: one record for each living thread, as profile.proto
 * or as text with debug=1. The readable dump with debug=2 is dump_text.c's.
 */
#include "collect/dump/dump.h"
#include "own/memory.h"

#include "base/status.h"
#include "base/writer.h"
#include "collect/encode/records_profile.h"
#include "collect/registry/registry.h"
#include "collect/signal/heap/hook_stack.h"
#include "collect/store/tables.h"
#include "collect/threads/tasks.h"

#include <stdlib.h>

static const struct cpprof__value_type types[] = {{"goroutine", "count"}};
static const struct cpprof__records_form form = {
    .name = "goroutine",
    .types = types,
    .n_types = 1,
    .period_type = {"goroutine", "count"},
    .period = 1,
};

/* A record for each thread, from malloc; NULL: no memory. */
static struct cpprof__stack_record *
records_of(const struct cpprof__dump *dump)
{
    struct cpprof__stack_record *records =
        cpprof__calloc(dump->n + 1, sizeof *records);
    size_t i;

    for (i = 0; records && i < dump->n; i++)
        records[i] =
            (struct cpprof__stack_record){.values = {1},
                                          .stack = dump->threads[i].stack,
                                          .labels = dump->threads[i].labels};
    return records;
}

static enum cpprof_status
write_records(const struct cpprof__dump *dump, struct cpprof_writer writer,
              const struct cpprof_profile_options *options,
              struct cpprof_error *error)
{
    struct cpprof__stack_record *records = records_of(dump);
    enum cpprof_status status;

    if (!records) {
        cpprof__writer_refuse(&writer);
        return cpprof__fail_nomem(error);
    }
    status =
        cpprof__records_write(&form, records, dump->n, options, writer, error);
    cpprof__free(records);
    return status;
}

static enum cpprof_status
take_records(const struct cpprof__builtin *self,
             const struct cpprof_profile_options *options, uintptr_t above,
             struct cpprof__stack_record **records, size_t *n,
             struct cpprof_error *error)
{
    const struct cpprof__dump_wanted wanted = {.depth = CPPROF__HEAP_DEPTH,
                                               .above = above};
    struct cpprof__dump dump;
    enum cpprof_status status = cpprof__dump_take_all(&wanted, &dump, error);

    if (status != CPPROF_OK)
        return status;
    *records = records_of(&dump);
    *n = dump.n;
    cpprof__dump_free(&dump);
    return *records ? CPPROF_OK : cpprof__fail_nomem(error);
}

static enum cpprof_status
write_profile(const struct cpprof__builtin *self, struct cpprof_writer writer,
              const struct cpprof_profile_options *options,
              struct cpprof_error *error)
{
    const struct cpprof__dump_wanted wanted = {
        .details = options->debug > 1,
        .depth = options->debug > 1 ? CPPROF__MAX_DEPTH : CPPROF__HEAP_DEPTH,
        .above = (uintptr_t)__builtin_return_address(0),
    };
    struct cpprof__dump dump;
    enum cpprof_status status = cpprof__dump_take_all(&wanted, &dump, error);

    if (status != CPPROF_OK) {
        cpprof__writer_refuse(&writer);
        return status;
    }
    if (options->debug > 1) {
        cpprof__tables_resolve();
        status =
            cpprof__dump_write_text(&dump, options->symbolize, writer, error);
    } else {
        status = write_records(&dump, writer, options, error);
    }
    cpprof__dump_free(&dump);
    return status;
}

/* The kernel counts also own threads that are just beginning or ending. */
static size_t
count(const struct cpprof__builtin *self)
{
    size_t n = 0;

    cpprof__free(cpprof__tasks(NULL, 0, &n));
    return n;
}

static enum cpprof_status
add_all_records(const struct cpprof__builtin *self,
                struct cpprof__records *all_records, struct cpprof_error *error)
{
    const struct cpprof__dump_wanted wanted = {
        .depth = CPPROF_RECORD_DEPTH,
        .above = (uintptr_t)__builtin_return_address(0),
    };
    struct cpprof__dump dump;
    enum cpprof_status status = cpprof__dump_take_all(&wanted, &dump, error);
    size_t i;

    if (status != CPPROF_OK)
        return status;
    for (i = 0; i < dump.n; i++)
        cpprof__records_add_stack(all_records, NULL, dump.threads[i].stack);
    cpprof__dump_free(&dump);
    return CPPROF_OK;
}

const struct cpprof__builtin cpprof__builtin_goroutine = {
    .name = "goroutine",
    .count = count,
    .write = write_profile,
    .all_records = add_all_records,
    .form = &form,
    .records = take_records,
};
