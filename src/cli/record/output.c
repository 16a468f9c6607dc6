/* SPDX-License-Identifier: MIT */
/*
 * Writes the files of a recording, for each kind of profile: FILE is of the
 * command's own image, and every other image that has samples of that kind gets
 * a file beside it. Kinds differ in where an image's numbers are, how it is
 * written, and what is printed about it. With -one FILE has all images.
 */
#include "cli/record/record.h"

#include "cli/fetch/debuginfod.h"
#include "cli/messages.h"
#include "cli/terminal.h"
#include "object/plug_in.h"
#include "object/symbolizer.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The most files that get a line each; of further ones only the number is
 * printed. A build starts hundreds of processes. */
#define LINES_MAX 10

/* No image has this index. */
#define NO_IMAGE SIZE_MAX

/* The files of one kind. */
struct output {
    struct cpprof__record_options *options;
    struct cpprof_recording *recording;
    unsigned kind;      /* CPPROF__RECORD_* */
    char *path;         /* FILE */
    size_t n_written;   /* besides FILE */
    uint64_t n_samples; /* in those */
    char *largest;      /* the file with most samples; NULL: none has one */
    uint64_t n_largest; /* in it */
    bool failed;        /* what went wrong is printed */
};

/* An executed image, as the kind of profile sees it. */
struct image {
    const char *name;
    struct cpprof__record_process process;
    uint32_t number; /* among those of this pid */
    uint64_t n_samples;
    uint64_t n_lost;
    bool is_empty; /* there is nothing to write */
};

static size_t
count_images(const struct output *out)
{
    return out->kind == CPPROF__RECORD_CPU
               ? cpprof_recording_image_count(out->recording)
               : cpprof_recording_heap_count(out->recording);
}

static struct image
image_at(const struct output *out, size_t index)
{
    const struct cpprof_recorded_heap *heap;
    const struct cpprof_recorded_waits *waits;
    struct image i;

    if (out->kind == CPPROF__RECORD_CPU) {
        const struct cpprof_recorded_image *cpu =
            cpprof_recording_image_at(out->recording, index);

        return (struct image){cpu->name,   {cpu->pid, cpu->pid_namespace},
                              cpu->image,  cpu->n_samples,
                              cpu->n_lost, !cpu->n_samples && !cpu->n_lost};
    }
    heap = cpprof_recording_heap_at(out->recording, index);
    waits = cpprof_recording_waits_at(out->recording, index);
    i = (struct image){.name = heap->name,
                       .process = {heap->pid, heap->pid_namespace},
                       .number = heap->image,
                       .n_samples = waits->n_wall,
                       .n_lost = waits->n_lost};
    if (out->kind == CPPROF__RECORD_BLOCK)
        i.n_samples = waits->n_block;
    if (out->kind == CPPROF__RECORD_MUTEX)
        i.n_samples = waits->n_mutex;
    if (out->kind == CPPROF__RECORD_HEAP) {
        i.n_samples = heap->n_samples;
        i.n_lost = heap->n_lost;
    }
    i.is_empty = !i.n_samples;
    return i;
}

/* ----------------------------------------------------------- messages ---- */

static const char *
plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* FILE as it is called. */
static const char *
shown(const struct output *out)
{
    return out->options->shown ? out->options->shown : out->path;
}

/* Print what was written to path. */
static void
print(const struct output *out, size_t index, const char *path)
{
    const struct cpprof_recorded_image *cpu;
    const struct cpprof_recorded_heap *heap =
        cpprof_recording_heap_at(out->recording, index);
    const struct cpprof_recorded_waits *waits =
        cpprof_recording_waits_at(out->recording, index);
    struct image i = image_at(out, index);
    const char *what = "sample";
    bool is_heap = out->kind == CPPROF__RECORD_HEAP; /* memory is lost, too */
    char lost[48], more[512];

    if (i.n_lost)
        snprintf(lost, sizeof lost, "%" PRIu64 "%s lost", i.n_lost,
                 is_heap ? " samples" : "");
    else
        snprintf(lost, sizeof lost, "%s lost", is_heap ? "no sample" : "none");
    switch (out->kind) {
    case CPPROF__RECORD_CPU:
        cpu = cpprof_recording_image_at(out->recording, index);
        snprintf(more, sizeof more, "%" PRIu64 " thread%s, %.1f s, %s (%s)",
                 cpu->n_threads, plural(cpu->n_threads),
                 (double)cpu->duration_ns * 1e-9, lost, cpu->engine);
        break;
    case CPPROF__RECORD_HEAP:
        snprintf(more, sizeof more,
                 "%.2f MB allocated, %.2f MB in use, %s (1 in %" PRId64
                 " bytes)",
                 (double)heap->alloc_bytes / 1048576,
                 (double)heap->inuse_bytes / 1048576, lost, heap->rate);
        break;
    case CPPROF__RECORD_BLOCK:
    case CPPROF__RECORD_MUTEX:
        what = out->kind == CPPROF__RECORD_BLOCK ? "wait" : "contention";
        snprintf(more, sizeof more, "%.3f s of waiting, %s",
                 (double)(out->kind == CPPROF__RECORD_BLOCK ? waits->block_ns
                                                            : waits->mutex_ns) *
                     1e-9,
                 lost);
        break;
    default:
        snprintf(more, sizeof more, "%.3f s of threads' time",
                 (double)waits->wall_ns * 1e-9);
    }
    cpprof__cli_warn("%s: %" PRIu64 " %s%s, %s", path, i.n_samples, what,
                     plural(i.n_samples), more);
}

/* -------------------------------------------------------------- files ---- */

/* A file with so many samples was written. */
static void
note_file(struct output *out, const char *path, uint64_t n_samples)
{
    if (n_samples <= out->n_largest)
        return;
    free(out->largest);
    out->largest = strdup(path);
    out->n_largest = n_samples;
}

/* A container that the command begins may have a process of the same pid. One
 * that runs already has the pid of its own namespace. */
static bool
is_of_command(const struct output *out, struct cpprof__record_process process,
              pid_t command)
{
    return process.pid == command &&
           (out->options->pids || out->options->process_name ||
            !process.pid_namespace ||
            process.pid_namespace == cpprof__record_pid_namespace(getpid()));
}

/* The image that FILE is about: the last of the command's pid that is not
 * empty, or else the last. */
static size_t
find_main(const struct output *out, pid_t command)
{
    size_t n = count_images(out), found = NO_IMAGE, i;
    bool has_samples = false;

    for (i = 0; i < n; i++) {
        struct image image = image_at(out, i);

        if (!is_of_command(out, image.process, command) ||
            (has_samples && image.is_empty))
            continue;
        found = i;
        has_samples = !image.is_empty;
    }
    return found;
}

static enum cpprof_status
write_to(const struct output *out, size_t index,
         const struct cpprof_writer *writer, struct cpprof_error *error)
{
    const struct cpprof__record_options *o = out->options;
    uint32_t legacy = o->legacy ? CPPROF_FLAG_LEGACY : 0;
    uint32_t labels = o->labels ? CPPROF_FLAG_LABELS : 0;
    const struct cpprof_cpu_options cpu = {
        .size = sizeof cpu, .symbolize = o->symbolize, .flags = legacy};
    const struct cpprof_heap_options heap = {
        .size = sizeof heap,
        .symbolize = o->symbolize,
        .flags = (o->peak ? CPPROF_FLAG_PEAK : 0) | labels | legacy};
    const struct cpprof_profile_options waits = {.size = sizeof waits,
                                                 .symbolize = o->symbolize,
                                                 .flags = labels | legacy};

    if (out->kind == CPPROF__RECORD_CPU)
        return cpprof_recording_write_cpu(out->recording, index, writer, &cpu,
                                          error);
    if (out->kind == CPPROF__RECORD_HEAP)
        return cpprof_recording_write_heap(out->recording, index, writer, &heap,
                                           error);
    return cpprof_recording_write_waits(out->recording, index,
                                        cpprof__record_kind_name(out->kind),
                                        writer, &waits, error);
}

/* Write an image; false after printing what went wrong. */
static bool
write_image(const struct output *out, size_t index, const char *path)
{
    struct cpprof_writer writer;
    struct cpprof_error error;

    if (cpprof_writer_to_path(path, &writer, &error) != CPPROF_OK) {
        cpprof__cli_fail("%s", error.text);
        return false;
    }
    if (write_to(out, index, &writer, &error) != CPPROF_OK) {
        cpprof__cli_fail("%s: %s", path, error.text);
        return false;
    }
    return true;
}

/* Write an image that is not the command's. If another one has its name and
 * pid, the file's name gets its number. */
static void
write_beside(struct output *out, size_t index)
{
    struct image image = image_at(out, index);
    size_t n = count_images(out), n_same = 0, i;
    char *path;

    for (i = 0; i < n; i++) {
        struct image other = image_at(out, i);

        n_same += other.process.pid == image.process.pid &&
                  !strcmp(other.name, image.name);
    }
    path = cpprof__record_name_beside(out->path, image.name, image.process.pid,
                                      n_same > 1 ? &image.number : NULL);
    if (!path || !write_image(out, index, path)) {
        out->failed = true;
    } else {
        if (out->n_written++ < LINES_MAX)
            print(out, index, path);
        out->n_samples += image.n_samples;
        note_file(out, path, image.n_samples);
    }
    free(path);
}

/* Write every other image that is not empty, and print so. */
static void
write_others(struct output *out, size_t main_image)
{
    size_t n = count_images(out), n_skipped = 0, i;
    bool room = cpprof__record_has_room_beside(out->path);

    for (i = 0; i < n; i++) {
        if (i == main_image || image_at(out, i).is_empty)
            continue;
        if (room)
            write_beside(out, i);
        else
            n_skipped++;
    }
    if (out->n_written > LINES_MAX && out->kind == CPPROF__RECORD_CPU)
        cpprof__cli_warn("and %zu more files; the %zu other processes have "
                         "%" PRIu64 " samples in all",
                         out->n_written - LINES_MAX, out->n_written,
                         out->n_samples);
    else if (out->n_written > LINES_MAX)
        cpprof__cli_warn("and %zu more %s profiles of other processes",
                         out->n_written - LINES_MAX,
                         cpprof__record_kind_name(out->kind));
    if (n_skipped)
        cpprof__cli_warn("%s is no file: %zu other process%s not written",
                         out->path, n_skipped,
                         n_skipped == 1 ? " was" : "es were");
}

/* Write FILE, or say why there is none. */
static void
write_main(struct output *out, size_t main_image)
{
    const struct cpprof_recorded_heap *heap =
        cpprof_recording_heap_at(out->recording, main_image);

    out->failed = true;
    if (main_image == NO_IMAGE && out->kind == CPPROF__RECORD_CPU &&
        out->options->is_attached) {
        cpprof__cli_fail("%s: not written: %s" CPPROF__RECORD_IDLE
                         "; where it waits: "
                         "-t wall",
                         shown(out), out->options->command[0]);
    } else if (main_image == NO_IMAGE && out->kind == CPPROF__RECORD_CPU) {
        cpprof__cli_fail("%s: not written: no samples of %s, which used no "
                         "CPU time or did not load libcpprof.so",
                         shown(out), out->options->command[0]);
    } else if (main_image == NO_IMAGE && out->options->is_attached) {
        cpprof__cli_fail("%s: not written: no %s samples of %s in that time",
                         shown(out), cpprof__record_kind_name(out->kind),
                         out->options->command[0]);
    } else if (main_image == NO_IMAGE) {
        cpprof__cli_fail("%s: not written: nothing of %s, which did not load "
                         "libcpprof.so or could not write where it is recorded",
                         shown(out), out->options->command[0]);
    } else if (out->kind == CPPROF__RECORD_HEAP && heap->owner &&
               !heap->n_samples) {
        /* An empty profile would not say so. */
        cpprof__cli_fail("%s: not written: allocations of %s do not come by "
                         "cpprof: malloc is that of %s",
                         out->path, heap->name, heap->owner);
    } else if (write_image(out, main_image, out->path)) {
        print(out, main_image, shown(out));
        note_file(out, out->path, image_at(out, main_image).n_samples);
        out->failed = false;
    }
}

/* ---------------------------------------------------- one profile ---- */

/* Add the image to the sum, unless it is empty. */
static enum cpprof_status
add_image(const struct output *out, struct cpprof__record_sum *sum,
          size_t index, struct cpprof_error *error)
{
    struct cpprof__buffer bytes = {0};
    struct cpprof_writer writer = cpprof__record_writer(&bytes);
    struct image image = image_at(out, index);
    enum cpprof_status status;

    if (image.is_empty)
        return CPPROF_OK;
    status = write_to(out, index, &writer, error);
    if (status == CPPROF_OK)
        status = cpprof__record_sum_add(sum, image.name, image.process, &bytes,
                                        error);
    cpprof__buffer_free(&bytes);
    sum->n_samples += image.n_samples;
    sum->n_lost += image.n_lost;
    return status;
}

/* Add all images but one. */
static enum cpprof_status
add_images(const struct output *out, struct cpprof__record_sum *sum, size_t but,
           struct cpprof_error *error)
{
    size_t n = count_images(out), i;
    enum cpprof_status status = CPPROF_OK;

    for (i = 0; i < n && status == CPPROF_OK; i++)
        if (i != but)
            status = add_image(out, sum, i, error);
    return status;
}

/* Add them all up: the command's first, so that its binary is the profile's. */
static enum cpprof_status
add_up(const struct output *out, size_t main_image,
       struct cpprof__record_ended *ended, struct cpprof__record_sum *sum,
       struct cpprof_error *error)
{
    enum cpprof_status status = ended->error.status;

    if (status != CPPROF_OK)
        *error = ended->error;
    else if (main_image != NO_IMAGE)
        status = add_image(out, sum, main_image, error);
    if (status == CPPROF_OK)
        status = cpprof__record_sum_join(
            sum, &ended->sums[__builtin_ctz(out->kind)], error);
    return status == CPPROF_OK ? add_images(out, sum, main_image, error)
                               : status;
}

/* Write all images into FILE. False, and nothing written or printed, if all are
 * empty. */
static bool
write_one(struct output *out, size_t main_image,
          struct cpprof__record_ended *ended)
{
    struct cpprof__record_sum sum = {0};
    struct cpprof_error error;
    enum cpprof_status status = add_up(out, main_image, ended, &sum, &error);
    char text[128];
    size_t n_processes;

    if (status == CPPROF_OK && !sum.merger)
        return false;
    n_processes = cpprof__record_sum_processes(&sum);
    if (out->kind == CPPROF__RECORD_CPU)
        sum.used_ns = out->options->used_ns;
    snprintf(text, sizeof text,
             "cpprof: %" PRIu64 " sample%s of %zu process%s, %" PRIu64 " lost",
             sum.n_samples, plural(sum.n_samples), n_processes,
             n_processes == 1 ? "" : "es", sum.n_lost);
    if (status == CPPROF_OK)
        status = cpprof__record_sum_write(&sum, out->options, text, out->path,
                                          &error);
    if (status == CPPROF_OK) {
        cpprof__cli_warn("%s: %s", shown(out), text + strlen("cpprof: "));
        note_file(out, out->path, sum.n_samples);
    } else {
        cpprof__cli_fail("%s: %s", shown(out), error.text);
    }
    out->failed = status != CPPROF_OK;
    cpprof__record_sum_free(&sum);
    return true;
}

/* ---- while the command runs ---- */

/* Tunables. Files of so many processes are left alone, as those of most
 * commands are until they end: memory, some 160 KB each. Beyond that so many at
 * a time are added up, some milliseconds each, and so often in a second. */
#define ENDED_MIN  100
#define ENDED_MAX  128
#define ROUNDS_MAX 8

static bool
has_many(const struct cpprof__record_folder *folder)
{
    DIR *dir = opendir(folder->path);
    size_t n = 0;

    while (dir && n < ENDED_MIN * 2 && readdir(dir)) /* two files each */
        n++;
    if (dir)
        closedir(dir);
    return n >= ENDED_MIN * 2;
}

static enum cpprof_status
take(struct cpprof__record_ended *ended, struct cpprof_recording *recording,
     struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    unsigned kind;

    for (kind = 1; kind < CPPROF__RECORD_END && status == CPPROF_OK;
         kind *= 2) {
        const struct output out = {
            .options = ended->options, .recording = recording, .kind = kind};

        if (ended->options->kinds & kind)
            status = add_images(&out, &ended->sums[__builtin_ctz(kind)],
                                NO_IMAGE, error);
    }
    return status;
}

/* How many images there were. */
static size_t
take_some(struct cpprof__record_ended *ended)
{
    struct cpprof_recording *recording = NULL;
    struct cpprof_error error;
    enum cpprof_status status;
    size_t n;

    status = cpprof_recording_read_ended(ended->folder->path, ENDED_MAX,
                                         &recording, &error);
    n = cpprof_recording_image_count(recording) +
        cpprof_recording_heap_count(recording);
    if (status == CPPROF_OK)
        status = take(ended, recording, &error);
    if (status == CPPROF_OK)
        cpprof_recording_remove(recording);
    else
        ended->error = error;
    cpprof_recording_free(recording);
    return n;
}

void
cpprof__record_take_ended(struct cpprof__record_ended *ended)
{
    unsigned rounds = ROUNDS_MAX;

    while (rounds-- && ended->error.status == CPPROF_OK &&
           has_many(ended->folder) && take_some(ended))
        ;
}

void
cpprof__record_ended_free(struct cpprof__record_ended *ended)
{
    size_t i;

    for (i = 0; i < CPPROF__RECORD_KINDS; i++)
        cpprof__record_sum_free(&ended->sums[i]);
}

/* ---- all of them ---- */

/* Of all images, also those that are added up already. */
static uint64_t
count_ticks(const struct output *out, const struct cpprof__record_ended *ended)
{
    const struct cpprof__record_sum *sum =
        &ended->sums[__builtin_ctz(out->kind)];
    uint64_t n_ticks = sum->n_samples + sum->n_lost;
    size_t n = count_images(out), i;

    for (i = 0; i < n; i++) {
        struct image image = image_at(out, i);

        n_ticks += image.n_samples + image.n_lost;
    }
    return n_ticks;
}

/* All files of a kind, and what is in use at the end. False after printing what
 * went wrong. */
static bool
write_kind(struct cpprof__record_options *options,
           const struct cpprof__record_folder *folder,
           struct cpprof_recording *recording, unsigned kind, pid_t command,
           struct cpprof__record_ended *ended)
{
    struct output out = {.options = options,
                         .recording = recording,
                         .kind = kind,
                         .path = cpprof__record_name(options, kind)};
    size_t main_image = find_main(&out, command);
    const struct cpprof_recorded_heap *heap;

    if (!out.path) {
        cpprof__cli_fail("record: out of memory");
        return false;
    }
    if (kind == CPPROF__RECORD_CPU)
        options->n_ticks = count_ticks(&out, ended);
    if (!options->one || !write_one(&out, main_image, ended)) {
        write_main(&out, main_image);
        if (!options->is_verdict)
            write_others(&out, main_image);
    }
    if (kind == CPPROF__RECORD_HEAP && main_image != NO_IMAGE) {
        heap = cpprof_recording_heap_at(recording, main_image);
        options->n_lost = heap->n_lost;
        if (!out.failed && cpprof__record_has_room_beside(out.path) &&
            !(options->is_verdict
                  ? cpprof__record_lost(options, folder, command, out.path,
                                        heap->rate != 1)
                  : cpprof__record_in_use(options, out.path, heap->rate != 1)))
            out.failed = true;
    }
    if (kind != CPPROF__RECORD_HEAP && out.largest)
        cpprof__record_hottest(options, out.largest);
    free(out.largest);
    free(out.path);
    return !out.failed;
}

static bool
fetch_debug_file(void *ctx, const char *build_id, char *path, size_t n_path)
{
    return cpprof__debuginfod_fetch(ctx, PPROF_WANTED_DEBUG_FILE, build_id,
                                    path, n_path);
}

bool
cpprof__record_write(struct cpprof__record_options *options,
                     const struct cpprof__record_folder *folder, pid_t command,
                     struct cpprof__record_ended *ended)
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
    if (options->symbolize != CPPROF_SYMBOLIZE_NONE &&
        !cpprof__plug_in_load("symbol", CPPROF__SYMBOLIZER_SYMBOL,
                              CPPROF__SYMBOLIZER_ABI, &error))
        cpprof__cli_warn("there are no names: %s", error.text);
    cpprof__fetcher.warn = cpprof__cli_warn_once;
    if (cpprof__debuginfod_is_on() && !options->one)
        cpprof__fetcher.debug_file = fetch_debug_file;
    for (kind = 1; kind < CPPROF__RECORD_END; kind *= 2)
        if (options->kinds & kind &&
            !write_kind(options, folder, recording, kind, command, ended))
            written = false;
    cpprof__progress_end();
    cpprof_recording_free(recording);
    return written;
}
