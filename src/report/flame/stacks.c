/* SPDX-License-Identifier: MIT */
/*
 * Whole stacks, each once, with the sum of the values of its samples.
 *
 * A stack is compared where it lies, in the frames of a sample: an index maps
 * its hash to the first sample that has it. Nothing of it is copied, so memory
 * is in proportion to the number of different stacks and not to their depth.
 */
#include "report/flame/stacks.h"

#include "base/status.h"
#include "profile/model/path.h"

#include <inttypes.h>
#include <stdlib.h>

enum cpprof_status
cpprof__stacks_graph(struct cpprof__graph *g, struct cpprof__report *r)
{
    g->p = r->p;
    g->value = r->value;
    g->divisor = CPPROF__NO_DIVISOR;
    return cpprof__graph_make(g, r->options, CPPROF__GRAPH_BARE, r->error);
}

void
cpprof__stacks_name(const struct cpprof__graph *g,
                    const struct cpprof__node *node, struct cpprof__buffer *out)
{
    const struct cpprof__strings *strings = &g->p->strings;
    const char *file = "unknown";
    size_t n = 7;

    if (node->name || node->file || !node->address) {
        cpprof__node_name(g, node, out);
        return;
    }
    if (node->object)
        file = cpprof__path_base(cpprof__strings_text(strings, node->object),
                                 cpprof__strings_n(strings, node->object), &n);
    cpprof__buffer_append(out, "[", 1);
    cpprof__buffer_append(out, file, n);
    cpprof__buffer_printf(out, " <0x%" PRIx64 ">]", node->address);
}

bool
cpprof__stack_start(const struct cpprof__graph *g,
                    enum cpprof__stack_order order, const uint8_t *pivots,
                    size_t sample, struct cpprof__stack_rest *rest)
{
    struct cpprof__stack_rest before;
    uint32_t node;
    bool is_inline;

    *rest = cpprof__stack_begin(g, sample);
    if (order == CPPROF__FROM_LEAF)
        *rest = (struct cpprof__stack_rest){0, 0};
    if (order == CPPROF__FROM_ROOT || order == CPPROF__FROM_LEAF)
        return true;
    do {
        before = *rest;
        if (!cpprof__stack_next(g, sample, rest, &node, &is_inline))
            return false;
    } while (!pivots[node]);
    if (order == CPPROF__CALLEES)
        *rest = before;
    return true;
}

/* ------------------------------------------------------------- equal ---- */

/* A sample's stack as numbers, which next() reads one after the other. */
struct reading {
    const struct cpprof__stacks *s;
    size_t sample;
    struct cpprof__stack_rest rest;
};

static struct reading
begin(const struct cpprof__stacks *s, size_t sample)
{
    return (struct reading){s, sample, cpprof__stack_begin(s->g, sample)};
}

/* False at the end. */
static bool
next(struct reading *r, uint64_t *number)
{
    uint32_t node;
    bool is_inline;

    if (!cpprof__stack_next(r->s->g, r->sample, &r->rest, &node, &is_inline))
        return false;
    if (!(r->s->flags & CPPROF__STACKS_BY_INLINE))
        is_inline = false;
    *number = (uint64_t)node << 1 | is_inline;
    return true;
}

static uint32_t
labels_of(const struct cpprof__stacks *s, size_t sample)
{
    return s->flags & CPPROF__STACKS_BY_LABELS
               ? s->g->p->samples.at[sample].labels
               : 0;
}

struct wanted {
    const struct cpprof__stacks *s;
    size_t sample;
};

static bool
is_wanted(void *ctx, uint32_t value)
{
    const struct wanted *w = ctx;
    size_t sample = w->s->samples.at[value];
    struct reading a = begin(w->s, sample), b = begin(w->s, w->sample);
    uint64_t x, y;
    bool more;

    if (labels_of(w->s, sample) != labels_of(w->s, w->sample))
        return false;
    do {
        more = next(&a, &x);
        if (next(&b, &y) != more || (more && x != y))
            return false;
    } while (more);
    return true;
}

static bool
add_sample(struct cpprof__stacks *s, size_t sample)
{
    const int64_t *values = cpprof__values(s->g->p, sample);
    size_t n_types = s->g->p->sample_types.n, i;
    struct wanted wanted = {s, sample};
    struct reading r = begin(s, sample);
    uint64_t hash = labels_of(s, sample), number;
    uint32_t at;

    while (next(&r, &number))
        hash = cpprof__hash_add(hash, number);
    hash = cpprof__hash_u64(hash);
    at = cpprof__index_find(&s->index, hash, is_wanted, &wanted);
    if (at == CPPROF__INDEX_NONE) {
        at = (uint32_t)s->samples.n;
        if (s->samples.n >= CPPROF__INDEX_NONE ||
            !CPPROF__ARRAY_ROOM(&s->samples, 1) ||
            !CPPROF__ARRAY_ROOM(&s->values, n_types) ||
            !cpprof__index_add(&s->index, hash, at))
            return false;
        s->samples.at[s->samples.n++] = (uint32_t)sample;
        for (i = 0; i < n_types; i++)
            s->values.at[s->values.n++] = 0;
    }
    for (i = 0; i < n_types; i++) {
        int64_t *sum = &s->values.at[at * n_types + i];

        *sum = cpprof__add(*sum, values[i]);
    }
    return true;
}

enum cpprof_status
cpprof__stacks_make(struct cpprof__stacks *s, const struct cpprof__graph *g,
                    uint32_t flags, struct cpprof_error *error)
{
    size_t i, k;

    s->g = g;
    s->flags = flags;
    for (i = 0; i < g->p->samples.n; i++) {
        const int64_t *values = cpprof__values(g->p, i);
        bool has_value = false;

        for (k = 0; k < g->p->sample_types.n; k++)
            has_value |= values[k] != 0;
        if (has_value && !add_sample(s, i))
            return cpprof__fail_nomem(error);
    }
    return CPPROF_OK;
}

void
cpprof__stacks_free(struct cpprof__stacks *s)
{
    CPPROF__ARRAY_FREE(&s->samples);
    CPPROF__ARRAY_FREE(&s->values);
    cpprof__index_free(&s->index);
}
