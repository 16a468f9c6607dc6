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
#include <sys/stat.h>

/* Files that get a line each; of more only the number is said. A build starts
 * hundreds of processes. */
#define LINES_MAX 10

struct output {
    const struct cpprof__record_options *options;
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

/* Where the part that names the kind of file begins: ".pb.gz". */
static size_t
suffix_at(const char *file)
{
    static const char *const known[] = {".pb.gz", ".pprof.gz", ".gz", ".pb"};
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file;
    const char *dot = strrchr(name, '.');
    size_t n = strlen(file), i;

    for (i = 0; i < sizeof known / sizeof *known; i++) {
        size_t n_known = strlen(known[i]);

        if (strlen(name) > n_known && !strcmp(file + n - n_known, known[i]))
            return n - n_known;
    }
    return dot && dot != name ? (size_t)(dot - file) : n;
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

/* FILE with name and pid in it; NULL without memory. */
static char *
name_beside(const struct output *out, const struct cpprof_recorded_image *image)
{
    const char *file = out->options->out;
    size_t n = suffix_at(file);
    char number[16] = "", *path, *p;

    if (is_one_of_many(out->recording, image))
        snprintf(number, sizeof number, ".%" PRIu32, image->image);
    if (asprintf(&path, "%.*s.%s.%" PRId32 "%s%s", (int)n, file, image->name,
                 image->pid, number, file + n) < 0)
        return NULL;
    for (p = path + n + 1; *p; p++)
        if (*p == '/' || (unsigned char)*p < ' ')
            *p = '_';
    return path;
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
    struct cpprof_writer writer;
    struct cpprof_error error;

    if (cpprof_path_writer(path, &writer, &error) != CPPROF_OK) {
        cpprof__cli_fail("%s", error.text);
        return false;
    }
    if (cpprof_recording_write(out->recording, index, writer,
                               out->options->symbolize, &error) != CPPROF_OK) {
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

    if (write_image(out, index, out->options->out))
        print_written(out->options->out, image);
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

/* Files beside /dev/null would be files in /dev. */
static bool
has_room_beside(const char *path)
{
    struct stat st;

    return stat(path, &st) < 0 || S_ISREG(st.st_mode);
}

static void
write_others(struct output *out, size_t main_image)
{
    size_t n = cpprof_recording_n_images(out->recording), i, n_skipped = 0;
    bool room = has_room_beside(out->options->out);

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
                         out->options->out, n_skipped,
                         n_skipped == 1 ? " was" : "es were");
}

bool
cpprof__record_files_write(const struct cpprof__record_options *options,
                           const struct cpprof__record_folder *folder,
                           pid_t command)
{
    struct output out = {.options = options};
    struct cpprof_error error;
    size_t main_image;

    /* Whoever still runs has no one to sample for any more. */
    if (cpprof_recording_stop(folder->path, &error) != CPPROF_OK ||
        cpprof_recording_open(folder->path, &out.recording, &error) !=
            CPPROF_OK) {
        cpprof__cli_fail("record: %s", error.text);
        return false;
    }
    main_image = find_main(out.recording, command);
    if (main_image == NONE) {
        cpprof__cli_fail("%s: not written: no samples of %s, which used no "
                         "CPU time or did not load libcpprof.so",
                         options->out, options->command[0]);
        out.failed = true;
    } else {
        write_main(&out, main_image);
    }
    write_others(&out, main_image);
    cpprof_recording_free(out.recording);
    return !out.failed;
}
