/* SPDX-License-Identifier: MIT */
/*
 * Writes a CPU profile from one or more stores: samples through the builder,
 * then comments about the engine, the clock and losses.
 *
 * A store's mappings get numbers of the builder once for each store; stacks
 * and label sets are then translated by number.
 */
#include "collect/cpu/cpu_profile.h"

#include "base/status.h"
#include "collect/encode/kept_symbolizer.h"
#include "collect/encode/names.h"
#include "collect/labels/labels.h"
#include "collect/signal/sample/ring.h"
#include "own/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fewer samples than this say nothing about a rate. */
#define RATE_MIN_SAMPLES 20

static void
open_symbolizer(struct cpprof__cpu_profile *profile, int32_t pid,
                enum cpprof_symbolize symbolize, enum cpprof__cpu_names names)
{
    struct cpprof__symbolizer_options options = {
        .fetcher = cpprof__fetcher,
        .functions_only = symbolize == CPPROF_SYMBOLIZE_FUNCTIONS,
        .pid = pid,
    };

    if (symbolize == CPPROF_SYMBOLIZE_NONE)
        return;
    profile->ops = names == CPPROF__CPU_NAMES_REMEMBERED ? cpprof__names_load()
                   : names == CPPROF__CPU_NAMES_KEPT
                       ? cpprof__kept_symbolizer_load()
                       : cpprof__symbolizer_load();
    if (profile->ops)
        profile->symbolizer = profile->ops->make(&options);
}

enum cpprof_status
cpprof__cpu_profile_begin(struct cpprof__cpu_profile *profile,
                          const struct cpprof__spool_head *head,
                          const struct cpprof_cpu_options *options,
                          enum cpprof__cpu_names names,
                          struct cpprof_writer writer,
                          struct cpprof_error *error)
{
    static const struct cpprof__value_type types[] = {{"samples", "count"},
                                                      {"cpu", "nanoseconds"}};
    struct cpprof__profile_head shape = {
        .sample_types = types,
        .n_sample_types = 2,
        .period_type = {"cpu", "nanoseconds"},
        .period = (int64_t)head->period_ns,
        .time_ns = (int64_t)head->start_ns,
    };
    enum cpprof_status status;

    memset(profile, 0, sizeof *profile);
    profile->period_ns = head->period_ns;
    profile->is_legacy = options->flags & CPPROF_FLAG_LEGACY;
    if (profile->is_legacy) {
        cpprof__cpu_legacy_begin(&profile->legacy, head->period_ns,
                                 options->flags & CPPROF_FLAG_NO_DECOYS,
                                 writer);
        return CPPROF_OK;
    }
    open_symbolizer(profile, head->pid, options->symbolize, names);
    status = cpprof__builder_make(
        &shape, writer, profile->symbolizer ? profile->ops : NULL,
        profile->symbolizer, &profile->builder, error);
    if (status == CPPROF_OK)
        cpprof__builder_use_scripts(profile->builder, &cpprof__scripts);
    else if (profile->symbolizer)
        profile->ops->free(profile->symbolizer);
    return status;
}

static struct cpprof__builder_frame
frame_of(const struct cpprof__store_node *node, const uint32_t *numbers,
         size_t n_mappings)
{
    uint32_t mapping = node->mapping;

    if (mapping < n_mappings)
        mapping = numbers[mapping];
    else if (!cpprof__is_made_code(mapping))
        mapping = CPPROF__NO_MAPPING;
    return (struct cpprof__builder_frame){node->pc, mapping};
}

/* Node 0 is the root, which is no frame. */
static void
expect_all(struct cpprof__builder *builder, const struct cpprof__store *store,
           const uint32_t *numbers, size_t n_mappings)
{
    uint32_t i;

    for (i = 1; numbers && i < store->head->n_nodes; i++)
        cpprof__builder_expect(builder,
                               frame_of(&store->nodes[i], numbers, n_mappings));
}

static size_t
stack_of(const struct cpprof__store *store, uint32_t node,
         const uint32_t *numbers, size_t n_mappings,
         struct cpprof__builder_frame *frames)
{
    size_t n = 0;

    for (; node && n < CPPROF__RING_MAX_PCS; node = store->nodes[node].parent) {
        frames[n++] = frame_of(&store->nodes[node], numbers, n_mappings);
    }
    return n;
}

static void
set_labels(struct cpprof__cpu_profile *profile,
           const struct cpprof__store *store, uint32_t number,
           struct cpprof__label_list *labels)
{
    const struct cpprof__store_labels *set;

    labels->n = 0;
    if (!number)
        return;
    set = &store->label_sets[number - 1];
    cpprof__labels_decode(store->text + set->text, set->n_bytes, labels);
    if (labels->failed)
        cpprof__builder_fail_nomem(profile->builder);
}

static void
add_samples(struct cpprof__cpu_profile *profile,
            const struct cpprof__store *store)
{
    struct cpprof__builder_frame frames[CPPROF__RING_MAX_PCS];
    struct cpprof__label_list labels = {0};
    size_t n = 0;
    uint32_t i,
        *numbers = cpprof__builder_add_store(profile->builder, store, &n);

    expect_all(profile->builder, store, numbers, n);
    for (i = 0; numbers && i < store->head->n_samples; i++) {
        const struct cpprof__store_sample *sample = &store->samples[i];
        int64_t values[2] = {(int64_t)sample->count,
                             (int64_t)(sample->count * profile->period_ns)};

        if (!sample->count)
            continue;
        profile->n_samples += sample->count;
        set_labels(profile, store, sample->labels, &labels);
        cpprof__builder_add_sample(
            profile->builder, values, frames,
            stack_of(store, sample->node, numbers, n, frames), labels.at,
            labels.n);
    }
    cpprof__label_list_free(&labels);
    cpprof__free(numbers);
}

void
cpprof__cpu_profile_add(struct cpprof__cpu_profile *profile,
                        const struct cpprof__store *store)
{
    if (profile->is_legacy)
        cpprof__cpu_legacy_add(&profile->legacy, store);
    else
        add_samples(profile, store);
}

void
cpprof__cpu_profile_fail_nomem(struct cpprof__cpu_profile *profile)
{
    if (profile->is_legacy)
        cpprof__fail_nomem(&profile->legacy.error);
    else
        cpprof__builder_fail_nomem(profile->builder);
}

static void
add_lost(struct cpprof__cpu_profile *profile, uint64_t lost)
{
    struct cpprof__builder_frame frame = {CPPROF__FRAME_LOST,
                                          CPPROF__NO_MAPPING};
    int64_t values[2] = {(int64_t)lost, (int64_t)(lost * profile->period_ns)};

    if (lost)
        cpprof__builder_add_sample(profile->builder, values, &frame, 1, NULL,
                                   0);
}

void
cpprof__cpu_profile_engine(const struct cpprof__spool_head *head,
                           uint64_t n_samples, char *text, size_t n)
{
    uint64_t delivered =
        n_samples ? head->rate_hz * head->n_records / n_samples : 0;
    const char *kernel = head->notes & CPPROF__SPOOL_NO_KERNEL
                             ? ", time in the kernel is missing"
                             : "";
    const char *outside =
        head->notes & CPPROF__SPOOL_OUTSIDE ? " from outside" : "";

    if (n_samples < RATE_MIN_SAMPLES ||
        delivered + delivered / 50 >= head->rate_hz)
        snprintf(text, n, "%s%s, %u Hz%s", head->engine, outside, head->rate_hz,
                 kernel);
    else
        snprintf(text, n,
                 "%s%s, %u Hz asked, %" PRIu64 " Hz delivered and weighed%s",
                 head->engine, outside, head->rate_hz, delivered, kernel);
}

static void
add_comments(struct cpprof__cpu_profile *profile,
             const struct cpprof__spool_head *head, uint64_t lost)
{
    uint64_t sampled_ns = (profile->n_samples + lost) * profile->period_ns;
    char engine[160], text[256];

    cpprof__cpu_profile_engine(head, profile->n_samples, engine, sizeof engine);
    snprintf(text, sizeof text, "cpprof: engine %s", engine);
    cpprof__builder_add_comment(profile->builder, text);
    snprintf(text, sizeof text,
             "cpprof: %u thread%s, %.3f s of CPU time by the clock, %.3f s "
             "sampled, %" PRIu64 " samples lost",
             head->n_threads, head->n_threads == 1 ? "" : "s",
             (double)head->cpu_ns / 1e9, (double)sampled_ns / 1e9, lost);
    cpprof__builder_add_comment(profile->builder, text);
    if (head->notes & CPPROF__SPOOL_OUTSIDE)
        cpprof__builder_add_comment(
            profile->builder,
            "cpprof: CPU only, from outside, by copied stacks: the library "
            "could not be loaded into the process");
}

enum cpprof_status
cpprof__cpu_profile_end(struct cpprof__cpu_profile *profile,
                        const struct cpprof__spool_head *head, uint64_t lost,
                        struct cpprof_error *error)
{
    enum cpprof_status status;

    if (profile->is_legacy)
        return cpprof__cpu_legacy_end(&profile->legacy, lost, error);
    add_lost(profile, lost);
    add_comments(profile, head, lost);
    status = cpprof__builder_end(
        profile->builder, (int64_t)(head->last_mono_ns - head->start_mono_ns),
        error);
    if (profile->symbolizer)
        profile->ops->free(profile->symbolizer);
    return status;
}
