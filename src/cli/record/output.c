/* SPDX-License-Identifier: MIT */
/*
 * The files of one kind of profile: which image gets the file that the user
 * named, how the others are named, and what is printed about them. The kinds
 * differ only in a table of functions (struct cpprof__record_way).
 */
#include "cli/record/output.h"

#include "cli/messages.h"

#include <stdlib.h>
#include <string.h>

/* The most files that get a line each; of further ones only the number is
 * printed. A build starts hundreds of processes. */
#define LINES_MAX 10

static struct cpprof__record_image
image_at(const struct cpprof__record_output *out, size_t index)
{
    return out->way->image(out, index);
}

size_t
cpprof__record_find_main(const struct cpprof__record_output *out, pid_t command)
{
    size_t n = out->way->n_images(out->recording), i;
    size_t found = CPPROF__RECORD_NO_IMAGE;
    bool has_samples = false;

    for (i = 0; i < n; i++) {
        struct cpprof__record_image image = image_at(out, i);

        if (image.pid != command || (has_samples && image.is_empty))
            continue;
        found = i;
        has_samples = !image.is_empty;
    }
    return found;
}

bool
cpprof__record_write_image(const struct cpprof__record_output *out,
                           size_t index, const char *path)
{
    struct cpprof_writer writer;
    struct cpprof_error error;

    if (cpprof_writer_to_path(path, &writer, &error) != CPPROF_OK) {
        cpprof__cli_fail("%s", error.text);
        return false;
    }
    if (out->way->write(out, index, writer, &error) != CPPROF_OK) {
        cpprof__cli_fail("%s: %s", path, error.text);
        return false;
    }
    return true;
}

/* Is there another image of the same name and pid? Then the file's name gets
 * its number. */
static bool
is_one_of_many(const struct cpprof__record_output *out,
               const struct cpprof__record_image *image)
{
    size_t n = out->way->n_images(out->recording), i, n_same = 0;

    for (i = 0; i < n; i++) {
        struct cpprof__record_image other = image_at(out, i);

        n_same += other.pid == image->pid && !strcmp(other.name, image->name);
    }
    return n_same > 1;
}

static void
write_beside(struct cpprof__record_output *out, size_t index)
{
    struct cpprof__record_image image = image_at(out, index);
    char *path = cpprof__record_name_beside(
        out->path, image.name, image.pid,
        is_one_of_many(out, &image) ? image.image : NULL);

    if (!path || !cpprof__record_write_image(out, index, path)) {
        out->failed = true;
    } else {
        if (out->n_written++ < LINES_MAX)
            out->way->print(out, index, path);
        out->n_samples += image.n_samples;
    }
    free(path);
}

void
cpprof__record_write_others(struct cpprof__record_output *out,
                            size_t main_image)
{
    size_t n = out->way->n_images(out->recording), i, n_skipped = 0;
    bool room = cpprof__record_has_room_beside(out->path);

    for (i = 0; i < n; i++) {
        if (i == main_image || image_at(out, i).is_empty)
            continue;
        if (room)
            write_beside(out, i);
        else
            n_skipped++;
    }
    if (out->n_written > LINES_MAX)
        out->way->print_more(out, out->n_written - LINES_MAX);
    if (n_skipped)
        cpprof__cli_warn("%s is no file: %zu other process%s not written",
                         out->path, n_skipped,
                         n_skipped == 1 ? " was" : "es were");
}

void
cpprof__record_write_main(struct cpprof__record_output *out, size_t main_image)
{
    out->failed = true;
    if (main_image == CPPROF__RECORD_NO_IMAGE) {
        cpprof__cli_fail("%s: not written: %s of %s, which %s", out->path,
                         out->kind == CPPROF__RECORD_CPU ? "no samples"
                                                         : "nothing",
                         out->options->command[0], out->way->missing);
    } else if (cpprof__record_write_image(out, main_image, out->path)) {
        out->way->print(out, main_image, out->path);
        out->failed = false;
    }
}

bool
cpprof__record_write_kind(const struct cpprof__record_options *options,
                          struct cpprof_recording *recording, unsigned kind,
                          const struct cpprof__record_way *way, pid_t command)
{
    struct cpprof__record_output out = {.options = options,
                                        .recording = recording,
                                        .kind = kind,
                                        .way = way,
                                        .path =
                                            cpprof__record_name(options, kind)};
    size_t main_image = cpprof__record_find_main(&out, command);

    if (!out.path) {
        cpprof__cli_fail("record: out of memory");
        return false;
    }
    cpprof__record_write_main(&out, main_image);
    cpprof__record_write_others(&out, main_image);
    free(out.path);
    return !out.failed;
}
