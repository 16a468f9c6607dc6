/* SPDX-License-Identifier: MIT */
/*
 * From a recording to profiles of waits, block and mutex, and by wall time: the
 * command's own is FILE; every other process that has samples gets a file
 * beside it.
 */
#include "cli/record/output.h"

#include "cli/messages.h"

#include <inttypes.h>
#include <stdio.h>

/* Waits, or samples, of the kind that is written. */
static uint64_t
n_waits(const struct cpprof__record_output *out, size_t index)
{
    const struct cpprof_recorded_waits *waits =
        cpprof_recording_waits_at(out->recording, index);

    switch (out->kind) {
    case CPPROF__RECORD_BLOCK:
        return waits->n_block;
    case CPPROF__RECORD_MUTEX:
        return waits->n_mutex;
    default:
        return waits->n_wall;
    }
}

static size_t
n_images(const struct cpprof_recording *recording)
{
    return cpprof_recording_heap_count(recording);
}

static struct cpprof__record_image
image_at(const struct cpprof__record_output *out, size_t index)
{
    const struct cpprof_recorded_heap *image =
        cpprof_recording_heap_at(out->recording, index);
    uint64_t n = n_waits(out, index);

    return (struct cpprof__record_image){
        .name = image->name,
        .pid = image->pid,
        .image = &image->image,
        .n_samples = n,
        .is_empty = !n,
    };
}

static void
print(const struct cpprof__record_output *out, size_t index, const char *path)
{
    const struct cpprof_recorded_waits *waits =
        cpprof_recording_waits_at(out->recording, index);
    bool is_block = out->kind == CPPROF__RECORD_BLOCK;
    uint64_t n = n_waits(out, index);
    char lost[48] = "none lost";

    if (out->kind >= CPPROF__RECORD_WALL) {
        cpprof__cli_warn("%s: %" PRIu64 " sample%s, %.3f s of threads' time",
                         path, n, n == 1 ? "" : "s",
                         (double)waits->wall_ns * 1e-9);
        return;
    }
    if (waits->n_lost)
        snprintf(lost, sizeof lost, "%" PRIu64 " lost", waits->n_lost);
    cpprof__cli_warn(
        "%s: %" PRIu64 " %s%s, %.3f s of waiting, %s", path, n,
        is_block ? "wait" : "contention", n == 1 ? "" : "s",
        (double)(is_block ? waits->block_ns : waits->mutex_ns) * 1e-9, lost);
}

static void
print_more(const struct cpprof__record_output *out, size_t n)
{
    cpprof__cli_warn("and %zu more %s profiles of other processes", n,
                     cpprof__record_kind_name(out->kind));
}

static enum cpprof_status
write_waits(const struct cpprof__record_output *out, size_t index,
            struct cpprof_writer writer, struct cpprof_error *error)
{
    const struct cpprof_profile_options options = {
        .size = sizeof options,
        .symbolize = out->options->symbolize,
        .flags = (out->options->labels ? CPPROF_FLAG_LABELS : 0) |
                 (out->options->legacy ? CPPROF_FLAG_LEGACY : 0),
    };

    return cpprof_recording_write_waits(out->recording, index,
                                        cpprof__record_kind_name(out->kind),
                                        &writer, &options, error);
}

static const struct cpprof__record_way way = {
    n_images,
    image_at,
    write_waits,
    print,
    print_more,
    "did not load libcpprof.so or could not write where it is recorded"};

bool
cpprof__record_waits_write(const struct cpprof__record_options *options,
                           struct cpprof_recording *recording, unsigned kind,
                           pid_t command)
{
    return cpprof__record_write_kind(options, recording, kind, &way, command);
}
