/* SPDX-License-Identifier: MIT */
/*
 * From a recording to files: the command's own image is FILE; every other
 * process that has samples gets a file beside it, cpu.NAME.PID.pb.gz.
 */
#include "record.h"

#include "cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Files that get a line each; of more only the number is said. A build starts
 * hundreds of processes. */
#define LINES_MAX 10

struct output {
    const struct cpprof__record_options *options;
    const char *path; /* FILE */
    struct cpprof_recording *recording;
    size_t n_written; /* besides FILE */
    uint64_t n_samples;
    bool failed;
};

/* No image has this index. */
#define NONE SIZE_MAX

/* The image that FILE is about: the last of the command's pid that has
 * samples, or else the last. */
static size_t
find_main(const struct cpprof_recording *recording, pid_t command)
{
    size_t n = cpprof_recording_n_images(recording), i, found = NONE;
    bool has_samples = false;

    for (i = 0; i < n; i++) {
        const struct cpprof_recorded_image *image =
            cpprof_recording_image(recording, i);
        bool any = image->n_samples || image->n_lost;

        if (image->pid != command || (has_samples && !any))
            continue;
        found = i;
        has_samples = any;
    }
    return found;
}

/* Is there another image of the same name and pid? Then its number is told. */
static bool
is_one_of_many(const struct cpprof_recording *recording,
               const struct cpprof_recorded_image *image)
{
    size_t n = cpprof_recording_n_images(recording), i, n_same = 0;

    for (i = 0; i < n; i++) {
        const struct cpprof_recorded_image *other =
            cpprof_recording_image(recording, i);

        n_same += other->pid == image->pid && !strcmp(other->name, image->name);
    }
    return n_same > 1;
}

static char *
name_beside(const struct output *out, const struct cpprof_recorded_image *image)
{
    return cpprof__record_name_beside(
        out->path, image->name, image->pid,
        is_one_of_many(out->recording, image) ? &image->image : NULL);
}

static const char *
plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void
print_written(const char *path, const struct cpprof_recorded_image *image)
{
    char lost[48] = "none lost";

    if (image->n_lost)
        snprintf(lost, sizeof lost, "%" PRIu64 " lost", image->n_lost);
    cpprof__cli_warn("%s: %" PRIu64 " sample%s, %" PRIu64
                     " thread%s, %.1f s, %s (%s)",
                     path, image->n_samples, plural(image->n_samples),
                     image->n_threads, plural(image->n_threads),
                     (double)image->duration_ns * 1e-9, lost, image->engine);
}

static bool
write_image(struct output *out, size_t index, const char *path)
{
    const struct cpprof_cpu_options options = {
        .size = sizeof options,
        .symbolize = out->options->symbolize,
        .flags = out->options->legacy ? CPPROF_CPU_LEGACY : 0,
    };
    struct cpprof_writer writer;
    struct cpprof_error error;

    if (cpprof_path_writer(path, &writer, &error) != CPPROF_OK) {
        cpprof__cli_fail("%s", error.text);
        return false;
    }
    if (cpprof_recording_write(out->recording, index, writer, &options,
                               &error) != CPPROF_OK) {
        cpprof__cli_fail("%s: %s", path, error.text);
        return false;
    }
    return true;
}

static void
write_main(struct output *out, size_t index)
{
    const struct cpprof_recorded_image *image =
        cpprof_recording_image(out->recording, index);

    if (write_image(out, index, out->path))
        print_written(out->path, image);
    else
        out->failed = true;
}

static void
write_beside(struct output *out, size_t index)
{
    const struct cpprof_recorded_image *image =
        cpprof_recording_image(out->recording, index);
    char *path = name_beside(out, image);

    if (!path || !write_image(out, index, path)) {
        out->failed = true;
    } else {
        if (out->n_written++ < LINES_MAX)
            print_written(path, image);
        out->n_samples += image->n_samples;
    }
    free(path);
}

static void
write_others(struct output *out, size_t main_image)
{
    size_t n = cpprof_recording_n_images(out->recording), i, n_skipped = 0;
    bool room = cpprof__record_has_room_beside(out->path);

    for (i = 0; i < n; i++) {
        const struct cpprof_recorded_image *image =
            cpprof_recording_image(out->recording, i);

        if (i == main_image || !(image->n_samples || image->n_lost))
            continue;
        if (room)
            write_beside(out, i);
        else
            n_skipped++;
    }
    if (out->n_written > LINES_MAX)
        cpprof__cli_warn("and %zu more files; the %zu other processes have "
                         "%" PRIu64 " samples in all",
                         out->n_written - LINES_MAX, out->n_written,
                         out->n_samples);
    if (n_skipped)
        cpprof__cli_warn("%s is no file: %zu other process%s not written",
                         out->path, n_skipped,
                         n_skipped == 1 ? " was" : "es were");
}

static bool
write_cpu(const struct cpprof__record_options *options,
          struct cpprof_recording *recording, pid_t command)
{
    struct output out = {.options = options, .recording = recording};
    char *path = cpprof__record_name(options, CPPROF__RECORD_CPU);
    size_t main_image = find_main(recording, command);

    out.path = path;
    if (!path) {
        cpprof__cli_fail("record: out of memory");
        return false;
    }
    if (main_image == NONE) {
        cpprof__cli_fail("%s: not written: no samples of %s, which used no "
                         "CPU time or did not load libcpprof.so",
                         path, options->command[0]);
        out.failed = true;
    } else {
        write_main(&out, main_image);
    }
    write_others(&out, main_image);
    free(path);
    return !out.failed;
}

bool
cpprof__record_files_write(struct cpprof__record_options *options,
                           const struct cpprof__record_folder *folder,
                           pid_t command)
{
    struct cpprof_recording *recording;
    struct cpprof_error error;
    bool written = true;
    unsigned kind;

    /* Whoever still runs has no one to sample for any more. */
    if (cpprof_recording_stop(folder->path, &error) != CPPROF_OK ||
        cpprof_recording_open(folder->path, &recording, &error) != CPPROF_OK) {
        cpprof__cli_fail("record: %s", error.text);
        return false;
    }
    if (options->kinds & CPPROF__RECORD_CPU)
        written = write_cpu(options, recording, command);
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
