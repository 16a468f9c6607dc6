/* SPDX-License-Identifier: MIT */
#include "symbolize/lookup.h"

#include <string.h>

size_t
cpprof__lookup_binary(struct cpprof__lookup *l, const char *path,
                      const char *build_id, bool *nomem)
{
    const struct cpprof__symbolizer_options options = {
        .fetcher = l->fetcher,
        .functions_only = l->functions_only,
        .discriminators = l->discriminators,
        .addresses = true};
    struct cpprof__symbolizer_mapping mapping = {
        .limit = UINT64_MAX, .path = path, .build_id = build_id};
    size_t binary;

    *nomem = false;
    if (!l->symbolizer && !l->no_library) {
        l->ops = cpprof__symbolizer_load();
        l->no_library = !l->ops;
        l->symbolizer = l->ops ? l->ops->make(&options) : NULL;
    }
    if (l->no_library)
        return SIZE_MAX;
    binary =
        l->symbolizer ? l->ops->add_mapping(l->symbolizer, &mapping) : SIZE_MAX;
    *nomem = binary == SIZE_MAX;
    return binary;
}

size_t
cpprof__lookup_frames(struct cpprof__lookup *l, size_t binary, uint64_t address,
                      struct cpprof__frame *frames)
{
    if (binary == SIZE_MAX || !l->symbolizer)
        return 0;
    return l->ops->resolve(l->symbolizer, binary, address, frames,
                           CPPROF__LOOKUP_FRAMES);
}

void
cpprof__lookup_free(struct cpprof__lookup *l)
{
    if (l->symbolizer)
        l->ops->free(l->symbolizer);
    memset(l, 0, sizeof *l);
}
