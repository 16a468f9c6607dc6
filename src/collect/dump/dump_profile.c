/* SPDX-License-Identifier: MIT */
/* The profile goroutine: a record for each thread that lives. */
#include "collect/dump/dump.h"

#include "collect/dump/dump_text.h"
#include "collect/encode/rows_profile.h"
#include "collect/registry/registry.h"
#include "collect/signal/heap/heap_stack.h"
#include "collect/store/tables.h"
#include "collect/threads/tasks.h"

#include "base/status.h"

#include <stdlib.h>

static const struct cpprof__value_type types[] = {{"goroutine", "count"}};
static const struct cpprof__rows_form form = {
    .name = "goroutine",
    .types = types,
    .n_types = 1,
    .period_type = {"goroutine", "count"},
    .period = 1,
};

/* A row for each thread, from malloc; NULL: no memory. */
static struct cpprof__row *
rows_of(const struct cpprof__dump *dump)
{
    struct cpprof__row *rows = calloc(dump->n + 1, sizeof *rows);
    size_t i;

    for (i = 0; rows && i < dump->n; i++)
        rows[i] = (struct cpprof__row){.values = {1},
                                       .stack = dump->threads[i].stack,
                                       .labels = dump->threads[i].labels};
    return rows;
}

static enum cpprof_status
write_rows(const struct cpprof__dump *dump, struct cpprof_writer writer,
           const struct cpprof_profile_options *options,
           struct cpprof_error *error)
{
    struct cpprof__row *rows = rows_of(dump);
    enum cpprof_status status;

    if (!rows) {
        if (writer.close)
            writer.close(writer.ctx, 1);
        return cpprof__fail_nomem(error);
    }
    status = cpprof__rows_write(&form, rows, dump->n, options, writer, error);
    free(rows);
    return status;
}

static enum cpprof_status
take_rows(const struct cpprof_profile_options *options, uintptr_t above,
          struct cpprof__row **rows, size_t *n, struct cpprof_error *error)
{
    const struct cpprof__dump_wanted wanted = {.depth = CPPROF__HEAP_DEPTH,
                                               .above = above};
    struct cpprof__dump dump;
    enum cpprof_status status = cpprof__dump_take_all(&wanted, &dump, error);

    if (status != CPPROF_OK)
        return status;
    *rows = rows_of(&dump);
    *n = dump.n;
    cpprof__dump_free(&dump);
    return *rows ? CPPROF_OK : cpprof__fail_nomem(error);
}

static enum cpprof_status
write_profile(struct cpprof_writer writer,
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
        if (writer.close)
            writer.close(writer.ctx, 1);
        return status;
    }
    if (options->debug > 1) {
        cpprof__tables_resolve();
        status =
            cpprof__dump_write_text(&dump, options->symbolize, writer, error);
    } else {
        status = write_rows(&dump, writer, options, error);
    }
    cpprof__dump_free(&dump);
    return status;
}

/* The kernel's count has those of ours in it that begin or end. */
static size_t
count(void)
{
    size_t n = 0;

    free(cpprof__tasks(NULL, 0, &n));
    return n;
}

static enum cpprof_status
add_records(struct cpprof__records *records, struct cpprof_error *error)
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
        cpprof__records_add_stack(records, NULL, dump.threads[i].stack);
    cpprof__dump_free(&dump);
    return CPPROF_OK;
}

const struct cpprof__builtin cpprof__builtin_goroutine = {
    .name = "goroutine",
    .count = count,
    .write = write_profile,
    .records = add_records,
    .form = &form,
    .rows = take_rows,
};
