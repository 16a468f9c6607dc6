/* SPDX-License-Identifier: MIT */
/*
 * From a recording to heap profiles: the command's own heap is FILE; every
 * other process that sampled an allocation gets a file beside it.
 */
#include "record.h"

#include "cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Files that get a line each; of more only the number is said. */
#define LINES_MAX 10

/* No heap has this index. */
#define NONE SIZE_MAX

struct output {
    const struct cpprof__record_options *options;
    struct cpprof_recording *recording;
    char *path;
    size_t n_written; /* besides FILE */
    bool failed;
};

/* The last of the command's pid that sampled something, or else the last. */
static size_t
find_main(const struct cpprof_recording *recording, pid_t command)
{
    size_t n = cpprof_recording_n_heaps(recording), i, found = NONE;
    bool has_samples = false;

    for (i = 0; i < n; i++) {
        const struct cpprof_recorded_heap *heap =
            cpprof_recording_heap(recording, i);

        if (heap->pid != command || (has_samples && !heap->n_samples))
            continue;
        found = i;
        has_samples = heap->n_samples > 0;
    }
    return found;
}

bool
cpprof__record_is_one_of_many(const struct cpprof_recording *recording,
                              const struct cpprof_recorded_heap *heap)
{
    size_t n = cpprof_recording_n_heaps(recording), i, n_same = 0;

    for (i = 0; i < n; i++) {
        const struct cpprof_recorded_heap *other =
            cpprof_recording_heap(recording, i);

        n_same += other->pid == heap->pid && !strcmp(other->name, heap->name);
    }
    return n_same > 1;
}

/* Nothing can be sampled of it, and an empty profile would not say so. */
static bool
is_blind(const struct cpprof_recorded_heap *heap)
{
    return heap->owner && !heap->n_samples;
}

static void
print_written(const char *path, const struct cpprof_recorded_heap *heap)
{
    char lost[48] = "none lost";

    if (heap->n_lost)
        snprintf(lost, sizeof lost, "%" PRIu64 " lost", heap->n_lost);
    cpprof__cli_warn("%s: %" PRIu64 " sample%s, %.2f MB allocated, %.2f MB in "
                     "use, %s (1 in %" PRId64 " bytes)",
                     path, heap->n_samples, heap->n_samples == 1 ? "" : "s",
                     (double)heap->alloc_bytes / 1048576,
                     (double)heap->inuse_bytes / 1048576, lost, heap->rate);
}

static bool
write_heap(struct output *out, size_t index, const char *path)
{
    const struct cpprof_heap_options options = {
        .size = sizeof options,
        .symbolize = out->options->symbolize,
        .flags = (out->options->peak ? CPPROF_HEAP_PEAK : 0) |
                 (out->options->labels ? CPPROF_HEAP_LABELS : 0) |
                 (out->options->legacy ? CPPROF_HEAP_LEGACY : 0),
    };
    struct cpprof_writer writer;
    struct cpprof_error error;

    if (cpprof_path_writer(path, &writer, &error) != CPPROF_OK) {
        cpprof__cli_fail("%s", error.text);
        return false;
    }
    if (cpprof_recording_write_heap(out->recording, index, writer, &options,
                                    &error) != CPPROF_OK) {
        cpprof__cli_fail("%s: %s", path, error.text);
        return false;
    }
    return true;
}

static void
write_beside(struct output *out, size_t index)
{
    const struct cpprof_recorded_heap *heap =
        cpprof_recording_heap(out->recording, index);
    char *path = cpprof__record_name_beside(
        out->path, heap->name, heap->pid,
        cpprof__record_is_one_of_many(out->recording, heap) ? &heap->image
                                                            : NULL);

    if (!path || !write_heap(out, index, path))
        out->failed = true;
    else if (out->n_written++ < LINES_MAX)
        print_written(path, heap);
    free(path);
}

static void
write_others(struct output *out, size_t main_heap)
{
    size_t n = cpprof_recording_n_heaps(out->recording), i, n_skipped = 0;
    bool room = cpprof__record_has_room_beside(out->path);

    for (i = 0; i < n; i++) {
        if (i == main_heap ||
            !cpprof_recording_heap(out->recording, i)->n_samples)
            continue;
        if (room)
            write_beside(out, i);
        else
            n_skipped++;
    }
    if (out->n_written > LINES_MAX)
        cpprof__cli_warn("and %zu more heap profiles of other processes",
                         out->n_written - LINES_MAX);
    if (n_skipped)
        cpprof__cli_warn("%s is no file: %zu other process%s not written",
                         out->path, n_skipped,
                         n_skipped == 1 ? " was" : "es were");
}

static void
write_main(struct output *out, const struct cpprof_recorded_heap *heap,
           size_t index)
{
    out->failed = true;
    if (!heap) {
        cpprof__cli_fail("%s: not written: nothing of %s, which did not load "
                         "libcpprof.so or could not write where it is recorded",
                         out->path, out->options->command[0]);
    } else if (is_blind(heap)) {
        cpprof__cli_fail("%s: not written: allocations of %s do not come by "
                         "cpprof: malloc is that of %s",
                         out->path, heap->name, heap->owner);
    } else if (write_heap(out, index, out->path)) {
        print_written(out->path, heap);
        out->failed = false;
    }
}

bool
cpprof__record_heap_write(struct cpprof__record_options *options,
                          struct cpprof_recording *recording, pid_t command)
{
    struct output out = {.options = options, .recording = recording};
    size_t main_heap = find_main(recording, command);
    const struct cpprof_recorded_heap *heap;

    out.path = cpprof__record_name(options, CPPROF__RECORD_HEAP);
    if (!out.path) {
        cpprof__cli_fail("record: out of memory");
        return false;
    }
    heap = cpprof_recording_heap(recording, main_heap);
    write_main(&out, heap, main_heap);
    options->n_lost = heap ? heap->n_lost : 0;
    if (!options->is_verdict)
        write_others(&out, main_heap);
    if (heap && !out.failed && cpprof__record_has_room_beside(out.path) &&
        !cpprof__record_in_use(options, out.path, heap->rate != 1))
        out.failed = true;
    free(out.path);
    return !out.failed;
}
