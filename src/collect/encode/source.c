/* SPDX-License-Identifier: MIT */
#include "collect/encode/source.h"

#include "arch/atomic.h"
#include "collect/signal/tables/scripts.h"

struct cpprof__symbolizer *
cpprof__source_symbolizer(const struct cpprof__source *source,
                          enum cpprof_symbolize symbolize)
{
    struct cpprof__symbolizer_options options = {
        .functions_only = symbolize == CPPROF_SYMBOLIZE_FUNCTIONS,
        .pid = source->pid,
    };

    if (symbolize == CPPROF_SYMBOLIZE_NONE || !source->ops)
        return NULL;
    return source->ops->make(&options);
}

static uint32_t
mapping_at(const struct cpprof__store *store, uint64_t pc, size_t n)
{
    uint32_t i;

    for (i = 0; i < n; i++)
        if (pc >= store->mappings[i].start && pc < store->mappings[i].limit &&
            !load_relaxed(&store->mappings[i].is_gone))
            return i;
    return CPPROF__NO_MAPPING;
}

size_t
cpprof__source_stack(const struct cpprof__source *source, uint32_t stack,
                     const uint32_t *numbers, size_t n_numbers,
                     struct cpprof__builder_frame *frames, size_t max)
{
    size_t i, n = cpprof__tables_stack(source->tables, stack, numbers,
                                       n_numbers, frames, max);

    for (i = 0; i < n; i++) {
        uint32_t found;

        if (frames[i].mapping != CPPROF__NO_MAPPING ||
            frames[i].pc < CPPROF__FRAME_END || cpprof__is_script(frames[i].pc))
            continue;
        found = mapping_at(&source->tables->store, frames[i].pc, n_numbers);
        if (found != CPPROF__NO_MAPPING)
            frames[i].mapping = numbers[found];
    }
    return n;
}
