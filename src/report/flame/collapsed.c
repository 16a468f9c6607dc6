/* SPDX-License-Identifier: MIT */
/*
 * -collapsed: a line for each stack, "root;...;leaf VALUE", as Brendan Gregg's
 * flame graph tools read it. Names are bent as `cpprof convert` does
 * (profile/text/collapsed_write.c). Values are those of the sample type, in its
 * own unit: they are counts to be added up by others.
 */
#include "own/memory.h"
#include "profile/text/text.h"
#include "report/flame/stacks.h"

#include "base/status.h"

#include <inttypes.h>
#include <stdlib.h>

struct collapsed {
    struct cpprof__report *r;
    struct cpprof__graph g;
    struct cpprof__stacks stacks;
    struct cpprof__buffer names;
    size_t *name; /* by node; + 1: its end */
};

/* Names without what would end a frame or a line. */
static bool
make_names(struct collapsed *c)
{
    size_t i, k;

    c->name = cpprof__calloc(c->g.nodes.n + 1, sizeof *c->name);
    if (!c->name)
        return false;
    for (i = 0; i < c->g.nodes.n; i++) {
        cpprof__stacks_name(&c->g, &c->g.nodes.at[i], &c->names);
        c->name[i + 1] = c->names.n;
    }
    for (k = 0; k < c->names.n; k++) {
        uint8_t *byte = &c->names.data[k];

        if (*byte < ' ' || *byte == 0x7f)
            *byte = ' ';
        else if (*byte == ';')
            *byte = ':';
    }
    return !c->names.failed;
}

static void
print_stack(struct collapsed *c, size_t at)
{
    size_t sample = c->stacks.samples.at[at];
    size_t n_types = c->r->p->sample_types.n;
    int64_t value = c->stacks.values.at[at * n_types + c->r->value];
    struct cpprof__stack_rest rest = cpprof__stack_begin(&c->g, sample);
    struct cpprof__buffer *out = &c->r->sink.buffer;
    size_t begin = out->n;
    uint32_t node;
    bool is_inline;

    if (!value)
        return;
    while (cpprof__stack_next(&c->g, sample, &rest, &node, &is_inline)) {
        if (out->n > begin)
            cpprof__buffer_append(out, ";", 1);
        cpprof__buffer_append(out, c->names.data + c->name[node],
                              c->name[node + 1] - c->name[node]);
    }
    if (out->n == begin)
        cpprof__buffer_append(out, "[unknown]", 9);
    cpprof__escape_collapsed(out, begin);
    cpprof__buffer_printf(out, " %" PRId64 "\n", value);
    cpprof__sink_mind(&c->r->sink);
}

enum cpprof_status
cpprof__collapsed(struct cpprof__report *r)
{
    struct collapsed c = {.r = r};
    enum cpprof_status status = cpprof__stacks_graph(&c.g, r);
    size_t i;

    if (status == CPPROF_OK)
        status = cpprof__stacks_make(&c.stacks, &c.g, 0, r->error);
    if (status == CPPROF_OK && !make_names(&c))
        status = cpprof__fail_nomem(r->error);
    for (i = 0; status == CPPROF_OK && i < c.stacks.samples.n; i++)
        if (!cpprof__sink_broken(&r->sink))
            print_stack(&c, i);
    cpprof__stacks_free(&c.stacks);
    cpprof__graph_free(&c.g);
    cpprof__buffer_free(&c.names);
    cpprof__free(c.name);
    return status;
}
