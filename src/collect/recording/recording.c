/* SPDX-License-Identifier: MIT */
/*
 * The recorder's side of the spool: copy the files of an image, finish what the
 * process could not (drain its ring), and write it as a profile.
 * Nothing in the files is trusted to make sense: a program that runs wild may
 * have written into them.
 *
 * Invariant: the files of one image at a time are mapped, so neither memory nor
 * mappings grow with the number of processes.
 */
#include "arch/clock.h"
#include "base/options.h"
#include "base/status.h"
#include "base/writer.h"
#include "collect/cpu/cpu_profile.h"
#include "collect/cpu/drain.h"
#include "collect/encode/kept_symbolizer.h"
#include "collect/recording/control.h"
#include "collect/recording/recording_tables.h"
#include "collect/store/script_file.h"
#include "collect/store/spool.h"
#include "own/folder.h"
#include "own/memory.h"
#include "own/sort.h"
#include <cpprof/recording.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Live processes are given this long to end their sampling. */
#define END_TRIES    150
#define END_PAUSE_NS 10000000

/* A process that was not heard of for so long is gone, if its pid is. */
#define SILENT_NS 5000000000u

/* Of one image, each some megabytes: the rest is not read. A process may only
 * have so many mappings. */
#define STORES_MAX 4096u

struct stored {
    void *block;
    struct cpprof__store store;
};

/* The files of an image in memory. */
struct mapped {
    struct cpprof__spool_head *head;
    size_t block_bytes;
    struct stored *stores;
    size_t n_stores;
    uint64_t n_lost; /* samples */
};

struct image {
    struct cpprof_recorded_image public;
    char file[32]; /* PID.IMAGE */
    char name[sizeof((struct cpprof__spool_head *)0)->name];
    char engine[160];
};

/* Is it the head of that file, and can it have been made by spool.c? */
static bool
head_makes_sense(const struct cpprof__spool_head *head, const char *file)
{
    uint64_t words = head->ring_words;
    char own[32];

    snprintf(own, sizeof own, "%d.%u", (int)head->pid, head->image);
    return !memcmp(head->magic, CPPROF__SPOOL_MAGIC, sizeof head->magic) &&
           !strcmp(own, file) && words && !(words & (words - 1)) &&
           words < 1u << 24 && head->rate_hz && head->period_ns &&
           memchr(head->name, 0, sizeof head->name) &&
           memchr(head->engine, 0, sizeof head->engine);
}

/* A copy of a file's first n bytes in memory of max bytes, zero behind its end;
 * NULL: there is no such file, or no memory (errno ENOMEM). */
static void *
copy_file(const char *path, size_t n, size_t max)
{
    int fd = cpprof__spool_open(path);
    void *p;

    errno = 0;
    if (fd < 0)
        return NULL;
    p = cpprof__map_file(-1, 0, max, PROT_READ | PROT_WRITE);
    if (p)
        cpprof__spool_copy(fd, p, n);
    close(fd);
    if (!p)
        errno = ENOMEM;
    return p;
}

/* ---- reading ---------------------------------------------------------- */

static void
unmap(struct mapped *m)
{
    size_t i;

    for (i = 0; i < m->n_stores; i++)
        munmap(m->stores[i].block, cpprof__store_bytes());
    cpprof__free(m->stores);
    if (m->head)
        munmap(m->head, m->block_bytes);
    memset(m, 0, sizeof *m);
}

static bool
add_store(struct mapped *m, void *block)
{
    struct stored *more =
        cpprof__realloc(m->stores, (m->n_stores + 1) * sizeof *more);

    if (!more) {
        munmap(block, cpprof__store_bytes());
        return false;
    }
    m->stores = more;
    more[m->n_stores].block = block;
    if (!cpprof__store_open(&more[m->n_stores].store, block)) {
        munmap(block, cpprof__store_bytes());
        return true; /* the process ended before it began one */
    }
    m->n_stores++;
    return true;
}

static bool
map_stores(struct mapped *m, const char *directory)
{
    uint32_t i;

    for (i = 0; i < STORES_MAX; i++) {
        char path[PATH_MAX + 48];
        void *block;

        snprintf(path, sizeof path, "%s/%d.%u.%u", directory, (int)m->head->pid,
                 m->head->image, i);
        block = copy_file(path, cpprof__store_shared_bytes(),
                          cpprof__store_bytes());
        if (!block)
            return errno != ENOMEM;
        if (!add_store(m, block))
            return false;
    }
    return true;
}

/* Samples that were committed to the ring but not yet drained. */
static void
drain_rest(struct mapped *m)
{
    struct cpprof__ring *ring =
        (void *)((char *)m->head + CPPROF__SPOOL_RING_OFFSET);
    struct cpprof__drain *drain = NULL;

    m->n_lost = m->n_stores ? ring->lost : 0;
    if (m->n_stores && ring->head != ring->tail)
        drain = cpprof__calloc(1, sizeof *drain);
    if (!drain)
        return;
    drain->ring = ring;
    drain->ring->mask = m->head->ring_words - 1;
    drain->store = &m->stores[m->n_stores - 1].store;
    cpprof__mappings_init(&drain->mappings, drain->store, false);
    if (cpprof__store_index(drain->store))
        cpprof__drain_all(drain);
    m->head->n_records += drain->n_records;
    m->n_lost += drain->n_lost;
    cpprof__free(drain);
}

static bool
read_head(const char *path, struct cpprof__spool_head *head)
{
    int fd = cpprof__spool_open(path);
    bool is_read = fd >= 0 && read(fd, head, sizeof *head) == sizeof *head;

    if (fd >= 0)
        close(fd);
    return is_read;
}

/* Map an image with all that was committed in its stores. Errors: CPPROF_NOMEM,
 * CPPROF_BAD_DATA: it is no recording, or not yet one. */
static enum cpprof_status
map_image(struct mapped *m, const char *directory, const char *file,
          struct cpprof_error *error)
{
    char path[CPPROF__SPOOL_PATH_BYTES];
    struct cpprof__spool_head head;

    memset(m, 0, sizeof *m);
    snprintf(path, sizeof path, "%s/%s", directory, file);
    if (!read_head(path, &head) || !head_makes_sense(&head, file))
        return cpprof__fail(error, CPPROF_BAD_DATA, 0, "%s: no recording",
                            path);
    m->block_bytes =
        CPPROF__SPOOL_RING_OFFSET + cpprof__ring_bytes(head.ring_words);
    m->head = copy_file(path, m->block_bytes, m->block_bytes);
    if (m->head)
        *m->head = head; /* as it was looked at */
    if (!m->head || !map_stores(m, directory)) {
        unmap(m);
        return cpprof__fail_nomem(error);
    }
    drain_rest(m);
    return CPPROF_OK;
}

/* public.name and .engine are set once images stay where they are. */
static struct image
describe(const struct mapped *m, const char *file)
{
    const struct cpprof__spool_head *head = m->head;
    struct image image = {0};
    struct cpprof_recorded_image *public = &image.public;
    size_t i;

    public->pid = head->pid;
    public->image = head->image;
    public->pid_namespace = head->pid_namespace;
    for (i = 0; i < m->n_stores; i++)
    public->n_samples += m->stores[i].store.head->total;
    public->n_lost = m->n_lost;
    public->n_threads = head->n_threads;
    public->start_ns = head->start_ns;
    if (head->last_mono_ns > head->start_mono_ns)
    public->duration_ns = head->last_mono_ns - head->start_mono_ns;
    cpprof__cpu_profile_engine(head, public->n_samples, image.engine,
                               sizeof image.engine);
    snprintf(image.file, sizeof image.file, "%s", file);
    memcpy(image.name, head->name, sizeof image.name);
    return image;
}

static bool
add_image(struct cpprof_recording *recording, const struct image *image)
{
    if (recording->n == recording->capacity) {
        size_t capacity = recording->capacity * 2 + 8;
        struct image *more =
            cpprof__realloc(recording->images, capacity * sizeof *more);

        if (!more)
            return false;
        recording->images = more;
        recording->capacity = capacity;
    }
    recording->images[recording->n++] = *image;
    return true;
}

/* A file that is no recording, or not yet one, is skipped. */
static enum cpprof_status
read_image(struct cpprof_recording *recording, const char *file,
           struct cpprof_error *error)
{
    struct mapped m;
    struct image image;
    enum cpprof_status status =
        map_image(&m, recording->directory, file, error);

    if (status == CPPROF_BAD_DATA)
        return CPPROF_OK;
    if (status != CPPROF_OK)
        return status;
    image = describe(&m, file);
    unmap(&m);
    return add_image(recording, &image) ? CPPROF_OK : cpprof__fail_nomem(error);
}

/* Is the name PID.IMAGE, and not PID.IMAGE.STORE or something else? */
static bool
is_image_name(const char *name)
{
    const char *dot = strchr(name, '.');

    return *name >= '1' && *name <= '9' && dot && dot[1] &&
           !strchr(dot + 1, '.');
}

static int
compare_images(const void *a, const void *b)
{
    const struct cpprof_recorded_image *x = &((const struct image *)a)->public;
    const struct cpprof_recorded_image *y = &((const struct image *)b)->public;

    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return (x->image > y->image) - (x->image < y->image);
}

/* Does the process behind this file still write to it? */
static bool
is_alive(const char *path)
{
    struct cpprof__spool_head head;

    return read_head(path, &head) && head.state == CPPROF__SPOOL_RUNNING &&
           head.pid > 0 && (!kill(head.pid, 0) || errno == EPERM);
}

/* Will nobody write to this file any more? A process of another pid namespace
 * has another pid there than here; it tells once a second that it is alive. */
static bool
is_over(const char *path)
{
    struct cpprof__spool_head head;
    uint64_t seen_ns;

    if (!read_head(path, &head) || head.pid <= 0 || !kill(head.pid, 0) ||
        errno != ESRCH)
        return false;
    seen_ns = head.last_mono_ns > head.start_mono_ns ? head.last_mono_ns
                                                     : head.start_mono_ns;
    return head.state == CPPROF__SPOOL_ENDED ||
           cpprof__now_ns(CLOCK_MONOTONIC) > seen_ns + SILENT_NS;
}

static bool
any_alive(const char *directory, struct cpprof__folder *folder)
{
    const char *name;
    bool any = false;

    cpprof__folder_rewind(folder);
    while (!any && (name = cpprof__folder_next(folder))) {
        char path[PATH_MAX + 272];

        snprintf(path, sizeof path, "%s/%s", directory, name);
        any = is_image_name(name) && is_alive(path);
    }
    return any;
}

/* Wait for the processes that live, which were told to stop. */
static void
wait_for_ends(const char *directory, struct cpprof__folder *folder)
{
    int i;

    if (!cpprof__control_is_set(directory))
        return;
    for (i = 0; i < END_TRIES && any_alive(directory, folder); i++)
        cpprof__sleep_ns(END_PAUSE_NS);
}

/* Is it to be read? Those that are over are, or all. */
static bool
is_wanted(const char *directory, const char *name, bool only_ended)
{
    char path[PATH_MAX + 272];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    return !only_ended || is_over(path);
}

static enum cpprof_status
read_files(struct cpprof_recording *made, struct cpprof__folder *folder,
           bool only_ended, size_t max, struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    const char *name;

    cpprof__folder_rewind(folder);
    while (status == CPPROF_OK && (name = cpprof__folder_next(folder))) {
        if (is_image_name(name) && made->n < max &&
            is_wanted(made->directory, name, only_ended))
            status = read_image(made, name, error);
        else if (cpprof__recorded_set_is_name(name) && made->set.n < max)
            status = cpprof__recorded_set_add(&made->set, made->directory, name,
                                              only_ended, error);
    }
    return status;
}

/* All is read: put it in order. */
static void
settle(struct cpprof_recording *made)
{
    size_t i;

    if (made->n)
        cpprof__sort(made->images, made->n, sizeof *made->images,
                     compare_images);
    cpprof__recorded_set_sort(&made->set);
    for (i = 0; i < made->n; i++) { /* in their places for good */
        made->images[i].public.name = made->images[i].name;
        made->images[i].public.engine = made->images[i].engine;
    }
}

static enum cpprof_status
read_recording(const char *directory, bool only_ended, size_t max,
               struct cpprof_recording **recording, struct cpprof_error *error)
{
    struct cpprof_recording *made;
    enum cpprof_status status;
    struct cpprof__folder folder;

    if (!cpprof__folder_open(&folder, directory))
        return cpprof__fail(error, CPPROF_SYSTEM, errno, "%s: %s", directory,
                            strerror(errno));
    made = cpprof__calloc(1, sizeof *made);
    if (!made) {
        cpprof__folder_close(&folder);
        return cpprof__fail_nomem(error);
    }
    snprintf(made->directory, sizeof made->directory, "%s", directory);
    if (!only_ended)
        wait_for_ends(directory, &folder);
    status = read_files(made, &folder, only_ended, max, error);
    cpprof__folder_close(&folder);
    if (status != CPPROF_OK) {
        cpprof_recording_free(made);
        return status;
    }
    settle(made);
    *recording = made;
    return CPPROF_OK;
}

enum cpprof_status
cpprof_recording_read(const char *directory,
                      struct cpprof_recording **recording,
                      struct cpprof_error *error)
{
    CPPROF__NEED(error, directory && recording);

    return read_recording(directory, false, SIZE_MAX, recording, error);
}

enum cpprof_status
cpprof_recording_read_ended(const char *directory, size_t max,
                            struct cpprof_recording **recording,
                            struct cpprof_error *error)
{
    CPPROF__NEED(error, directory && recording);

    return read_recording(directory, true, max, recording, error);
}

static void
remove_image(const char *directory, const struct image *image)
{
    char path[PATH_MAX + 48];
    uint32_t i = 0;

    do
        snprintf(path, sizeof path, "%s/%s.%u", directory, image->file, i++);
    while (!unlink(path));
    snprintf(path, sizeof path, "%s/%s", directory, image->file);
    unlink(path);
}

void
cpprof_recording_remove(const struct cpprof_recording *recording)
{
    size_t i;

    if (!recording)
        return;
    for (i = 0; i < recording->n; i++)
        remove_image(recording->directory, &recording->images[i]);
    cpprof__recorded_set_remove(&recording->set);
}

void
cpprof_recording_free(struct cpprof_recording *recording)
{
    if (!recording)
        return;
    cpprof__free(recording->images);
    cpprof__recorded_set_free(&recording->set);
    cpprof__kept_symbolizer_free();
    cpprof__free(recording);
}

size_t
cpprof_recording_image_count(const struct cpprof_recording *recording)
{
    return recording ? recording->n : 0;
}

const struct cpprof_recorded_image *
cpprof_recording_image_at(const struct cpprof_recording *recording,
                          size_t index)
{
    return recording && index < recording->n ? &recording->images[index].public
                                             : NULL;
}

/* ---- writing ---------------------------------------------------------- */

static enum cpprof_status
write_mapped(const struct cpprof_recording *recording, const struct mapped *m,
             struct cpprof_writer writer,
             const struct cpprof_cpu_options *options,
             struct cpprof_error *error)
{
    struct cpprof__cpu_profile profile;
    struct cpprof__scripts scripts;
    enum cpprof_status status;
    size_t i;

    status = cpprof__cpu_profile_begin(&profile, m->head, options,
                                       CPPROF__CPU_NAMES_KEPT, writer, error);
    if (status != CPPROF_OK)
        return status;
    cpprof__script_file_read(&scripts, recording->directory, m->head->scripts);
    if (!profile.is_legacy)
        cpprof__builder_use_scripts(profile.builder, &scripts);
    for (i = 0; i < m->n_stores; i++)
        cpprof__cpu_profile_add(&profile, &m->stores[i].store);
    status = cpprof__cpu_profile_end(&profile, m->head, m->n_lost, error);
    cpprof__script_file_free(&scripts);
    return status;
}

static enum cpprof_status
write_image(const struct cpprof_recording *recording, const struct image *image,
            struct cpprof_writer writer,
            const struct cpprof_cpu_options *options,
            struct cpprof_error *error)
{
    struct mapped m;
    enum cpprof_status status =
        map_image(&m, recording->directory, image->file, error);

    if (status != CPPROF_OK) {
        cpprof__writer_refuse(&writer);
        return status;
    }
    status = write_mapped(recording, &m, writer, options, error);
    unmap(&m);
    return status;
}

enum cpprof_status
cpprof_recording_write_cpu(struct cpprof_recording *recording, size_t index,
                           const struct cpprof_writer *given_writer,
                           const struct cpprof_cpu_options *given,
                           struct cpprof_error *error)
{
    struct cpprof_cpu_options options = {.size = sizeof options};
    struct cpprof_writer writer;
    enum cpprof_status status;

    CPPROF__NEED_BESIDES(given_writer, error, recording);
    status = cpprof__writer_take(given_writer, &writer, error);
    if (status == CPPROF_OK)
        status = cpprof__options(&options, sizeof options, given,
                                 "cpprof_cpu_options", error);
    if (status == CPPROF_OK)
        status = cpprof__options_flags(options.flags, CPPROF__CPU_FLAGS,
                                       options.symbolize, error);
    if (status == CPPROF_OK && index >= recording->n)
        status = cpprof__fail(error, CPPROF_INVALID, 0,
                              "image %zu of a recording with %zu", index,
                              recording->n);
    if (status == CPPROF_OK)
        return write_image(recording, &recording->images[index], writer,
                           &options, error);
    cpprof__writer_refuse(&writer);
    return status;
}

enum cpprof_status
cpprof_recording_write_cpu_to_path(struct cpprof_recording *recording,
                                   size_t index, const char *path,
                                   const struct cpprof_cpu_options *options,
                                   struct cpprof_error *error)
{
    return CPPROF__TO_PATH(
        path, error,
        cpprof_recording_write_cpu(recording, index, &writer, options, error));
}

enum cpprof_status
cpprof_recording_write_heap_to_path(struct cpprof_recording *recording,
                                    size_t index, const char *path,
                                    const struct cpprof_heap_options *options,
                                    struct cpprof_error *error)
{
    return CPPROF__TO_PATH(
        path, error,
        cpprof_recording_write_heap(recording, index, &writer, options, error));
}

enum cpprof_status
cpprof_recording_write_waits_to_path(
    struct cpprof_recording *recording, size_t index, const char *name,
    const char *path, const struct cpprof_profile_options *options,
    struct cpprof_error *error)
{
    return CPPROF__TO_PATH(path, error,
                           cpprof_recording_write_waits(recording, index, name,
                                                        &writer, options,
                                                        error));
}
