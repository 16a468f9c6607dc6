/* SPDX-License-Identifier: MIT */
/* Writes a CPU capture: from its segments to a file. */
#include "base/status.h"
#include "base/writer.h"
#include "collect/cpu/cpu_capture.h"

/* Begin the profile when there is something to put in it: at a full store, or
 * at the end. is_empty: there are no names to be found. Most forked children
 * end without a sample, and must not ask for the loader's lock for nothing. */
static void
begin_profile(struct cpprof__cpu_capture *c, bool is_empty,
              enum cpprof__cpu_names names)
{
    struct cpprof_cpu_options options = c->options;
    struct cpprof__cpu_output *out = &c->out;

    if (out->has_profile)
        return;
    out->has_profile = true;
    if (is_empty)
        options.symbolize = CPPROF_SYMBOLIZE_NONE;
    out->failed = cpprof__cpu_profile_begin(&out->profile, &c->head, &options,
                                            names, c->base.writer, &out->error);
    c->base.writer = (struct cpprof_writer){0}; /* the profile's now */
}

static void
add_view(struct cpprof__cpu_capture *c, struct cpprof__store *view)
{
    if (c->options.flags & CPPROF_FLAG_NO_LABELS)
        cpprof__store_view_drop_labels(view);
    cpprof__cpu_profile_add(&c->out.profile, view);
    cpprof__store_view_free(view);
}

static void
add_segment(struct cpprof__cpu_capture *c,
            const struct cpprof__cpu_segment *segment)
{
    struct cpprof__store view;

    if (cpprof__store_view_make(&view, &segment->shared->store, &segment->base))
        add_view(c, &view);
    else
        c->failed = true;
}

/* The profile holds its names until it ends. So it uses names of its own, and
 * not the remembered ones, which others would wait for. */
void
cpprof__cpu_capture_stream(struct cpprof__cpu_capture *c)
{
    begin_profile(c, false, CPPROF__CPU_NAMES_APART);
    if (c->out.failed == CPPROF_OK && c->n_segments)
        add_segment(c, &c->segments[c->n_segments - 1]);
}

static bool
is_empty(const struct cpprof__cpu_capture *c)
{
    return c->failed || (c->n_segments <= 1 && !c->last.head->total);
}

static void
add_segments(struct cpprof__cpu_capture *c)
{
    uint32_t i;

    for (i = 0; i + 1 < c->n_segments && !c->failed; i++)
        add_segment(c, &c->segments[i]);
    if (c->last.head)
        add_view(c, &c->last);
}

enum cpprof_status
cpprof__cpu_capture_write(struct cpprof__cpu_capture *c,
                          struct cpprof_error *error)
{
    struct cpprof__cpu_output *out = &c->out;

    if (c->base.needs_samples && !out->has_profile && !c->failed && !c->lost &&
        is_empty(c)) {
        cpprof__cpu_capture_let_go(c);
        cpprof__writer_refuse(&c->base.writer);
        return CPPROF_OK;
    }
    begin_profile(c, is_empty(c), CPPROF__CPU_NAMES_REMEMBERED);
    if (out->failed == CPPROF_OK) {
        add_segments(c);
        if (c->failed)
            cpprof__cpu_profile_fail_nomem(&out->profile);
        out->failed = cpprof__cpu_profile_end(&out->profile, &c->head, c->lost,
                                              &out->error);
    }
    cpprof__cpu_capture_let_go(c);
    if (out->failed != CPPROF_OK && error)
        *error = out->error;
    return out->failed;
}
