/* SPDX-License-Identifier: MIT */
/*
 * From a recording to profiles of waits, block and mutex, and by wall time: the
 * command's own is FILE; every other process that has samples gets a file
 * beside it.
 */
#include "record.h"

#include "cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Files that get a line each; of more only the number is said. */
#define LINES_MAX 10

/* No image has this index. */
#define NONE SIZE_MAX

struct output {
    const struct cpprof__record_options *options;
    struct cpprof_recording *recording;
    unsigned kind;
    char *path;
    size_t n_written; /* besides FILE */
    size_t n_skipped;
    bool failed;
};

/* Waits, or samples, of the kind that is written. */
static uint64_t
n_waits(const struct output *out, size_t index)
{
    const struct cpprof_recorded_waits *waits =
        cpprof_recording_waits(out->recording, index);

    switch (out->kind) {
    case CPPROF__RECORD_BLOCK:
        return waits->n_block;
    case CPPROF__RECORD_MUTEX:
        return waits->n_mutex;
    default:
        return waits->n_wall;
    }
}

/* The last of the command's pid in which a thread waited, or else the last. */
static size_t
find_main(const struct output *out, pid_t command)
{
    size_t n = cpprof_recording_n_heaps(out->recording), i, found = NONE;

    for (i = 0; i < n; i++) {
        if (cpprof_recording_heap(out->recording, i)->pid != command ||
            (found != NONE && n_waits(out, found) && !n_waits(out, i)))
            continue;
        found = i;
    }
    return found;
}

static void
print_written(const struct output *out, size_t index, const char *path)
{
    const struct cpprof_recorded_waits *waits =
        cpprof_recording_waits(out->recording, index);
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
        is_block ? "wait" : "contended unlock", n == 1 ? "" : "s",
        (double)(is_block ? waits->block_ns : waits->mutex_ns) * 1e-9, lost);
}

static bool
write_waits(const struct output *out, size_t index, const char *path)
{
    const struct cpprof_profile_options options = {
        .size = sizeof options,
        .symbolize = out->options->symbolize,
        .flags = (out->options->labels ? CPPROF_PROFILE_LABELS : 0) |
                 (out->options->legacy ? CPPROF_PROFILE_LEGACY : 0),
    };
    struct cpprof_writer writer;
    struct cpprof_error error;

    if (cpprof_path_writer(path, &writer, &error) != CPPROF_OK) {
        cpprof__cli_fail("%s", error.text);
        return false;
    }
    if (cpprof_recording_write_waits(out->recording, index,
                                     cpprof__record_kind_name(out->kind),
                                     writer, &options, &error) != CPPROF_OK) {
        cpprof__cli_fail("%s: %s", path, error.text);
        return false;
    }
    return true;
}

static void
write_beside(struct output *out, size_t index)
{
    const struct cpprof_recorded_heap *image =
        cpprof_recording_heap(out->recording, index);
    char *path = cpprof__record_name_beside(
        out->path, image->name, image->pid,
        cpprof__record_is_one_of_many(out->recording, image) ? &image->image
                                                             : NULL);

    if (!path || !write_waits(out, index, path))
        out->failed = true;
    else if (out->n_written++ < LINES_MAX)
        print_written(out, index, path);
    free(path);
}

static void
write_others(struct output *out, size_t main_image)
{
    size_t n = cpprof_recording_n_heaps(out->recording), i;
    bool room = cpprof__record_has_room_beside(out->path);

    for (i = 0; i < n; i++) {
        if (i == main_image || !n_waits(out, i))
            continue;
        if (room)
            write_beside(out, i);
        else
            out->n_skipped++;
    }
    if (out->n_written > LINES_MAX)
        cpprof__cli_warn("and %zu more %s profiles of other processes",
                         out->n_written - LINES_MAX,
                         cpprof__record_kind_name(out->kind));
    if (out->n_skipped)
        cpprof__cli_warn("%s is no file: %zu other process%s not written",
                         out->path, out->n_skipped,
                         out->n_skipped == 1 ? " was" : "es were");
}

bool
cpprof__record_waits_write(const struct cpprof__record_options *options,
                           struct cpprof_recording *recording, unsigned kind,
                           pid_t command)
{
    struct output out = {
        .options = options, .recording = recording, .kind = kind};
    size_t main_image = find_main(&out, command);

    out.path = cpprof__record_name(options, kind);
    if (!out.path) {
        cpprof__cli_fail("record: out of memory");
        return false;
    }
    if (main_image == NONE) {
        cpprof__cli_fail("%s: not written: nothing of %s, which did not load "
                         "libcpprof.so or could not write where it is recorded",
                         out.path, options->command[0]);
        out.failed = true;
    } else if (write_waits(&out, main_image, out.path)) {
        print_written(&out, main_image, out.path);
    } else {
        out.failed = true;
    }
    write_others(&out, main_image);
    free(out.path);
    return !out.failed;
}
