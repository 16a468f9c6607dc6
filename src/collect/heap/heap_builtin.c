/* SPDX-License-Identifier: MIT */
/*
 * The heap's entries in the registry: `heap` and `allocs`, the same profile
 * with different default values, and their records, which are unscaled as Go's
 * are.
 */
#include "collect/registry/registry.h"

#include "base/status.h"
#include "collect/heap/heap_owner.h"
#include "collect/heap/heap_records.h"
#include "collect/signal/heap/heap.h"
#include <cpprof/heap.h>

#include <stdlib.h>

static size_t
count(void)
{
    struct cpprof__heap_records records;
    size_t n;

    if (!cpprof__heap.head ||
        cpprof__heap_records_take(&cpprof__heap, 0, 0, &records, NULL) !=
            CPPROF_OK)
        return 0;
    n = records.n;
    free(records.records);
    return n;
}

static enum cpprof_status
write(uint32_t flags, struct cpprof_writer writer,
      const struct cpprof_profile_options *options, struct cpprof_error *error)
{
    struct cpprof_heap_options heap = {
        .size = sizeof heap,
        .debug = options->debug,
        .symbolize = options->symbolize,
        .flags = flags,
    };

    if (options->flags & CPPROF_FLAG_LABELS)
        heap.flags |= CPPROF_FLAG_LABELS;
    if (options->flags & CPPROF_FLAG_PEAK)
        heap.flags |= CPPROF_FLAG_PEAK;
    if (options->flags & CPPROF_FLAG_LEGACY)
        heap.flags |= CPPROF_FLAG_LEGACY;
    return cpprof_heap_write(&writer, &heap, error);
}

static enum cpprof_status
write_heap(struct cpprof_writer writer,
           const struct cpprof_profile_options *options,
           struct cpprof_error *error)
{
    return write(0, writer, options, error);
}

static enum cpprof_status
write_allocs(struct cpprof_writer writer,
             const struct cpprof_profile_options *options,
             struct cpprof_error *error)
{
    return write(CPPROF_FLAG_ALLOCS, writer, options, error);
}

/* Unscaled, as Go's are; there is another call for estimates. */
static enum cpprof_status
all_records(struct cpprof__records *all_records, struct cpprof_error *error)
{
    struct cpprof__heap_records records;
    enum cpprof_status status;
    char owner[256];
    size_t i;

    if (cpprof__heap_owner(owner, sizeof owner))
        return cpprof__fail(error, CPPROF_UNSUPPORTED, 0,
                            "allocations do not come by cpprof: malloc is "
                            "that of %s",
                            owner);
    if (!cpprof__heap_reserve())
        return cpprof__fail(error, CPPROF_UNSUPPORTED, 0,
                            "the heap profiler found no memory");
    status = cpprof__heap_records_take(&cpprof__heap, 0, 0, &records, error);
    if (status != CPPROF_OK)
        return status;
    for (i = 0; i < records.n; i++) {
        const int64_t *n = records.records[i].sampled;
        const int64_t values[CPPROF__RECORD_VALUES] = {
            n[CPPROF__ALLOC_BYTES],
            n[CPPROF__ALLOC_BYTES] - n[CPPROF__INUSE_BYTES],
            n[CPPROF__ALLOC_OBJECTS],
            n[CPPROF__ALLOC_OBJECTS] - n[CPPROF__INUSE_OBJECTS]};

        if (all_records->not_in_use || n[CPPROF__INUSE_OBJECTS])
            cpprof__records_add_stack(all_records, values,
                                      records.records[i].stack);
    }
    free(records.records);
    return CPPROF_OK;
}

const struct cpprof__builtin cpprof__builtin_heap = {
    .name = "heap",
    .count = count,
    .write = write_heap,
    .all_records = all_records,
};

const struct cpprof__builtin cpprof__builtin_allocs = {
    .name = "allocs",
    .count = count,
    .write = write_allocs,
    .all_records = all_records,
};
