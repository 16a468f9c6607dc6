/* SPDX-License-Identifier: MIT */
/*
 * From a recording to heap profiles: the command's own heap is FILE; every
 * other process that sampled an allocation gets a file beside it.
 */
#include "cli/record/output.h"

#include "cli/messages.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t
n_images(const struct cpprof_recording *recording)
{
    return cpprof_recording_heap_count(recording);
}

static struct cpprof__record_image
image_at(const struct cpprof__record_output *out, size_t index)
{
    const struct cpprof_recorded_heap *heap =
        cpprof_recording_heap_at(out->recording, index);

    return (struct cpprof__record_image){
        .name = heap->name,
        .pid = heap->pid,
        .image = &heap->image,
        .n_samples = heap->n_samples,
        .is_empty = !heap->n_samples,
    };
}

/* Its allocations cannot be sampled, and an empty profile would not say so. */
static bool
is_blind(const struct cpprof_recorded_heap *heap)
{
    return heap->owner && !heap->n_samples;
}

static void
print(const struct cpprof__record_output *out, size_t index, const char *path)
{
    const struct cpprof_recorded_heap *heap =
        cpprof_recording_heap_at(out->recording, index);
    char lost[48] = "none lost";

    if (heap->n_lost)
        snprintf(lost, sizeof lost, "%" PRIu64 " lost", heap->n_lost);
    cpprof__cli_warn("%s: %" PRIu64 " sample%s, %.2f MB allocated, %.2f MB in "
                     "use, %s (1 in %" PRId64 " bytes)",
                     path, heap->n_samples, heap->n_samples == 1 ? "" : "s",
                     (double)heap->alloc_bytes / 1048576,
                     (double)heap->inuse_bytes / 1048576, lost, heap->rate);
}

static void
print_more(const struct cpprof__record_output *out, size_t n)
{
    cpprof__cli_warn("and %zu more heap profiles of other processes", n);
}

static enum cpprof_status
write_heap(const struct cpprof__record_output *out, size_t index,
           struct cpprof_writer writer, struct cpprof_error *error)
{
    const struct cpprof_heap_options options = {
        .size = sizeof options,
        .symbolize = out->options->symbolize,
        .flags = (out->options->peak ? CPPROF_FLAG_PEAK : 0) |
                 (out->options->labels ? CPPROF_FLAG_LABELS : 0) |
                 (out->options->legacy ? CPPROF_FLAG_LEGACY : 0),
    };

    return cpprof_recording_write_heap(out->recording, index, &writer, &options,
                                       error);
}

static const struct cpprof__record_way way = {
    n_images,
    image_at,
    write_heap,
    print,
    print_more,
    "did not load libcpprof.so or could not write where it is recorded"};

bool
cpprof__record_heap_write(struct cpprof__record_options *options,
                          struct cpprof_recording *recording, pid_t command)
{
    struct cpprof__record_output out = {.options = options,
                                        .recording = recording,
                                        .kind = CPPROF__RECORD_HEAP,
                                        .way = &way};
    size_t main_heap = cpprof__record_find_main(&out, command);
    const struct cpprof_recorded_heap *heap;

    out.path = cpprof__record_name(options, CPPROF__RECORD_HEAP);
    if (!out.path) {
        cpprof__cli_fail("record: out of memory");
        return false;
    }
    heap = cpprof_recording_heap_at(recording, main_heap);
    if (heap && is_blind(heap)) {
        cpprof__cli_fail("%s: not written: allocations of %s do not come by "
                         "cpprof: malloc is that of %s",
                         out.path, heap->name, heap->owner);
        out.failed = true;
    } else {
        cpprof__record_write_main(&out, main_heap);
    }
    options->n_lost = heap ? heap->n_lost : 0;
    if (!options->is_verdict)
        cpprof__record_write_others(&out, main_heap);
    if (heap && !out.failed && cpprof__record_has_room_beside(out.path) &&
        !cpprof__record_in_use(options, out.path, heap->rate != 1))
        out.failed = true;
    free(out.path);
    return !out.failed;
}
