/* SPDX-License-Identifier: MIT */
/*
 * From a recording to files: one CPU profile for each image, and then the
 * other kinds, which have files of their own. FILE is the command's own image;
 * the images of other processes get names beside it (output.c).
 */
#include "cli/record/output.h"

#include "cli/messages.h"

#include <inttypes.h>
#include <stdio.h>

static size_t
n_images(const struct cpprof_recording *recording)
{
    return cpprof_recording_image_count(recording);
}

static struct cpprof__record_image
image_at(const struct cpprof__record_output *out, size_t index)
{
    const struct cpprof_recorded_image *image =
        cpprof_recording_image_at(out->recording, index);

    return (struct cpprof__record_image){
        .name = image->name,
        .pid = image->pid,
        .image = &image->image,
        .n_samples = image->n_samples,
        .is_empty = !image->n_samples && !image->n_lost,
    };
}

static const char *
plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void
print(const struct cpprof__record_output *out, size_t index, const char *path)
{
    const struct cpprof_recorded_image *image =
        cpprof_recording_image_at(out->recording, index);
    char lost[48] = "none lost";

    if (image->n_lost)
        snprintf(lost, sizeof lost, "%" PRIu64 " lost", image->n_lost);
    cpprof__cli_warn("%s: %" PRIu64 " sample%s, %" PRIu64
                     " thread%s, %.1f s, %s (%s)",
                     path, image->n_samples, plural(image->n_samples),
                     image->n_threads, plural(image->n_threads),
                     (double)image->duration_ns * 1e-9, lost, image->engine);
}

static void
print_more(const struct cpprof__record_output *out, size_t n)
{
    cpprof__cli_warn("and %zu more files; the %zu other processes have "
                     "%" PRIu64 " samples in all",
                     n, out->n_written, out->n_samples);
}

static enum cpprof_status
write_image(const struct cpprof__record_output *out, size_t index,
            struct cpprof_writer writer, struct cpprof_error *error)
{
    const struct cpprof_cpu_options options = {
        .size = sizeof options,
        .symbolize = out->options->symbolize,
        .flags = out->options->legacy ? CPPROF_FLAG_LEGACY : 0,
    };

    return cpprof_recording_write_cpu(out->recording, index, &writer, &options,
                                      error);
}

static const struct cpprof__record_way way = {
    n_images, image_at,   write_image,
    print,    print_more, "used no CPU time or did not load libcpprof.so"};

bool
cpprof__record_files_write(struct cpprof__record_options *options,
                           const struct cpprof__record_folder *folder,
                           pid_t command)
{
    struct cpprof_recording *recording;
    struct cpprof_error error;
    bool written = true;
    unsigned kind;

    /* Tell processes that still run to stop: nobody reads their samples any
     * more. */
    if (cpprof_recording_stop(folder->path, &error) != CPPROF_OK ||
        cpprof_recording_read(folder->path, &recording, &error) != CPPROF_OK) {
        cpprof__cli_fail("record: %s", error.text);
        return false;
    }
    if (options->kinds & CPPROF__RECORD_CPU)
        written = cpprof__record_write_kind(options, recording,
                                            CPPROF__RECORD_CPU, &way, command);
    if (options->kinds & CPPROF__RECORD_HEAP &&
        !cpprof__record_heap_write(options, recording, command))
        written = false;
    for (kind = CPPROF__RECORD_BLOCK; kind < CPPROF__RECORD_END; kind *= 2)
        if (options->kinds & kind &&
            !cpprof__record_waits_write(options, recording, kind, command))
            written = false;
    cpprof_recording_free(recording);
    return written;
}
