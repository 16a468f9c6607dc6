/* SPDX-License-Identifier: MIT */
/* Which frames at the leaf of a stack are not worth showing, by their names. */
#include "collect/encode/builder_internal.h"

/* Is all that a frame stands for, inlined calls too, to be hidden? */
static bool
is_hidden(struct cpprof__builder *b, const struct cpprof__builder_frame *frame,
          bool (*hides)(const char *name))
{
    size_t mapping, i, n;

    if (frame->pc < CPPROF__FRAME_END || cpprof__is_script(frame->pc) ||
        frame->mapping == CPPROF__NO_MAPPING)
        return false;
    mapping = cpprof__builder_mapping_at(b, frame->mapping)->symbolizer_index;
    if (mapping == SIZE_MAX)
        return false;
    n = b->ops->resolve(b->symbolizer, mapping, frame->pc, b->lines,
                        CPPROF__LINES_MAX);
    for (i = 0; i < n; i++)
        if (!hides(b->lines[i].name))
            return false;
    return n > 0;
}

size_t
cpprof__builder_n_hidden(struct cpprof__builder *b,
                         const struct cpprof__builder_frame *stack, size_t n,
                         bool (*hides)(const char *name))
{
    size_t i = 0;

    if (!b->ops || !b->symbolizer || !hides)
        return 0;
    while (i < n && is_hidden(b, &stack[i], hides))
        i++;
    return i < n ? i : 0;
}
