/* SPDX-License-Identifier: MIT */
/*
 * The recorder's side of the mirrored tables: finds the files of a directory,
 * loads one when it is needed, and writes profiles from it.
 *
 * A file is sparse and may be of a process that died at any moment. Only its
 * data is read, into private memory; the heads are checked, and every number
 * is bounded by the tables' readers. Sets of files are loaded one at a time,
 * so memory does not grow with their number.
 */
#include "collect/recording/recording_tables.h"

#include "arch/clock.h"
#include "base/options.h"
#include "base/status.h"
#include "base/writer.h"
#include "collect/contention/block_profile.h"
#include "collect/encode/kept_symbolizer.h"
#include "collect/heap/heap_profile.h"
#include "collect/recording/recorded.h"
#include "collect/store/script_file.h"
#include "collect/store/spool.h"
#include "collect/wall/wall_counts.h"
#include "own/memory.h"
#include "own/sort.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct cpprof__recorded_tables {
    struct cpprof_recorded_heap public;
    struct cpprof_recorded_waits waits;
    char path[PATH_MAX + 272];
    char name[sizeof((struct cpprof__mirror_head *)0)->name];
    char owner[sizeof((struct cpprof__mirror_head *)0)->owner];
};

/* One file in memory. */
struct loaded {
    char *base;
    size_t n_bytes;
    struct cpprof__mirror_head *head;
    struct cpprof__heap heap;
    struct cpprof__tables tables;
    struct cpprof__scripts scripts;
    struct cpprof__waits waits; /* .head NULL: nobody waited */
    struct cpprof__wall_counts wall;
    struct cpprof__wall_summary wall_summary; /* rate 0: there is none */
};

/* ---- reading a file --------------------------------------------------- */

/* It also is the file of whom it says. */
static bool
head_makes_sense(const struct cpprof__mirror_head *head, size_t n_bytes,
                 const char *path)
{
    char own[PATH_MAX + 32];

    cpprof__mirror_path(own, "", head->pid, head->image);
    return !memcmp(head->magic, CPPROF__MIRROR_MAGIC, sizeof head->magic) &&
           !strcmp(own, strrchr(path, '/')) && head->n_bytes == n_bytes &&
           head->pid > 0 && memchr(head->name, 0, sizeof head->name) &&
           memchr(head->owner, 0, sizeof head->owner);
}

/* The memory of a store. Its end is the indexes, which are not in the file. */
static size_t
memory_bytes(size_t n_bytes)
{
    return n_bytes + cpprof__store_bytes();
}

static void
unload(struct loaded *l)
{
    if (l->base)
        munmap(l->base, memory_bytes(l->n_bytes));
    l->base = NULL;
    cpprof__script_file_free(&l->scripts);
}

static void
set_pointers(struct loaded *l)
{
    char *base = l->base;

    l->head = (void *)base;
    l->tables.tree.head =
        (void *)(base + cpprof__recorded_offset(CPPROF__MIRROR_TREE));
    l->tables.tree.nodes =
        (void *)(base + cpprof__recorded_offset(CPPROF__MIRROR_NODES));
    cpprof__heap_use_parts(
        &l->heap, base + cpprof__recorded_offset(CPPROF__MIRROR_HEAP),
        base + cpprof__recorded_offset(CPPROF__MIRROR_BLOCKS),
        base + cpprof__recorded_offset(CPPROF__MIRROR_BUCKETS));
    l->heap.tree = &l->tables.tree;
    cpprof__waits_open(&l->waits,
                       base + cpprof__recorded_offset(CPPROF__MIRROR_WAITS),
                       cpprof__waits_bytes());
    cpprof__wall_kept_open(
        (void *)(base + cpprof__recorded_offset(CPPROF__MIRROR_WALL)), &l->wall,
        &l->wall_summary);
}

/* False: no recording, or no memory (errno ENOMEM). */
static bool
load(const char *path, struct loaded *l)
{
    int fd = cpprof__spool_open(path);
    void *p;

    memset(l, 0, sizeof *l);
    if (fd < 0)
        return false;
    l->n_bytes = cpprof__recorded_offset(CPPROF__MIRROR_END);
    p = cpprof__map_file(-1, 0, memory_bytes(l->n_bytes),
                         PROT_READ | PROT_WRITE);
    if (!p) {
        close(fd);
        errno = ENOMEM;
        return false;
    }
    l->base = p;
    cpprof__spool_copy(fd, l->base, l->n_bytes);
    close(fd);
    set_pointers(l);
    if (head_makes_sense(l->head, l->n_bytes, path) &&
        cpprof__store_open(&l->tables.store,
                           l->base +
                               cpprof__recorded_offset(CPPROF__MIRROR_STORE)))
        return true;
    unload(l);
    errno = EINVAL;
    return false;
}

/* ---- the set ---------------------------------------------------------- */

bool
cpprof__recorded_set_is_name(const char *name)
{
    const char *dot = strrchr(name, '.');

    return *name >= '1' && *name <= '9' && dot && !strcmp(dot, ".tables");
}

static uint64_t
clamp(int64_t value)
{
    return value > 0 ? (uint64_t)value : 0;
}

/* The stack of what found no room is not in the file: the tree's root, which
 * is no stack, stands for it. */
static enum cpprof_status
wait_records(const struct loaded *l, enum cpprof__wait_profile profile,
             struct cpprof__stack_record **records, size_t *n,
             struct cpprof_error *error)
{
    *records = NULL;
    *n = 0;
    return l->waits.head
               ? cpprof__block_records(&l->waits, profile, 0, records, n, error)
               : CPPROF_OK;
}

static enum cpprof_status
describe_waits(const struct loaded *l, enum cpprof__wait_profile profile,
               uint64_t *count, uint64_t *ns, struct cpprof_error *error)
{
    struct cpprof__stack_record *records;
    size_t i, n;
    enum cpprof_status status = wait_records(l, profile, &records, &n, error);

    for (i = 0; i < n; i++) {
        *count += clamp(records[i].values[0]);
        *ns += clamp(records[i].values[1]);
    }
    cpprof__free(records);
    return status;
}

static void
describe_wall(struct cpprof_recorded_waits *waits, const struct loaded *l)
{
    uint32_t i;

    for (i = 0; i < l->wall.n_slots; i++) {
        waits->n_wall += clamp(l->wall.slots[i].n);
        if (l->wall.slots[i].n)
            waits->wall_ns += clamp(l->wall.slots[i].ns);
    }
    waits->wall_ns += clamp(l->wall.lost_ns);
}

static enum cpprof_status
describe_both(struct cpprof_recorded_waits *waits, const struct loaded *l,
              struct cpprof_error *error)
{
    enum cpprof_status status = describe_waits(
        l, CPPROF__WAIT_BLOCK, &waits->n_block, &waits->block_ns, error);

    if (status == CPPROF_OK)
        status = describe_waits(l, CPPROF__WAIT_MUTEX, &waits->n_mutex,
                                &waits->mutex_ns, error);
    describe_wall(waits, l);
    if (l->waits.head)
        waits->n_lost = (l->waits.head->lost_count[CPPROF__WAIT_BLOCK] +
                         l->waits.head->lost_count[CPPROF__WAIT_MUTEX]) >>
                        CPPROF__WAIT_FRACTION_BITS;
    return status;
}

static enum cpprof_status
describe(struct cpprof__recorded_tables *tables, const struct loaded *l,
         struct cpprof_error *error)
{
    struct cpprof_recorded_heap *public = &tables->public;
    struct cpprof__heap_records records;
    enum cpprof_status status =
        cpprof__heap_records_take(&l->heap, 0, 0, &records, error);
    size_t i;

    if (status != CPPROF_OK)
        return status;
    public->pid = l->head->pid;
    public->image = l->head->image;
    public->pid_namespace = l->head->pid_namespace;
    public->is_forked = l->head->is_forked != 0;
    public->start_ns = l->head->start_ns;
    public->end_ns = l->head->end_ns;
    public->rate = records.rate;
    public->n_lost = clamp(records.n_lost) + l->head->n_refused;
    for (i = 0; i < records.n; i++) {
        const struct cpprof__heap_record *record = &records.records[i];

        public->n_samples += clamp(record->sampled[CPPROF__ALLOC_OBJECTS]);
        public->alloc_bytes += clamp(record->values[CPPROF__ALLOC_BYTES]);
        public->inuse_objects += clamp(record->values[CPPROF__INUSE_OBJECTS]);
        public->inuse_bytes += clamp(record->values[CPPROF__INUSE_BYTES]);
    }
    cpprof__free(records.records);
    memcpy(tables->name, l->head->name, sizeof tables->name);
    memcpy(tables->owner, l->head->owner, sizeof tables->owner);
    return describe_both(&tables->waits, l, error);
}

static bool
is_over(const char *path)
{
    struct cpprof__mirror_head head;
    int fd = cpprof__spool_open(path);
    bool is_read = fd >= 0 && read(fd, &head, sizeof head) == sizeof head;

    if (fd >= 0)
        close(fd);
    return is_read && head.state == CPPROF__MIRROR_ENDED && head.pid > 0 &&
           kill(head.pid, 0) && errno == ESRCH;
}

enum cpprof_status
cpprof__recorded_set_add(struct cpprof__recorded_set *set,
                         const char *directory, const char *name,
                         bool only_ended, struct cpprof_error *error)
{
    struct cpprof__recorded_tables *more, *tables;
    enum cpprof_status status;
    struct loaded l;

    more = cpprof__realloc(set->tables, (set->n + 1) * sizeof *more);
    if (!more)
        return cpprof__fail_nomem(error);
    set->tables = more;
    tables = &more[set->n];
    memset(tables, 0, sizeof *tables);
    snprintf(tables->path, sizeof tables->path, "%s/%s", directory, name);
    if (only_ended && !is_over(tables->path))
        return CPPROF_OK;
    if (!load(tables->path, &l))
        return errno == ENOMEM ? cpprof__fail_nomem(error) : CPPROF_OK;
    status = describe(tables, &l, error);
    unload(&l);
    if (status == CPPROF_OK)
        set->n++;
    return status;
}

static int
compare(const void *a, const void *b)
{
    const struct cpprof_recorded_heap *x =
        &((const struct cpprof__recorded_tables *)a)->public;
    const struct cpprof_recorded_heap *y =
        &((const struct cpprof__recorded_tables *)b)->public;

    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return (x->image > y->image) - (x->image < y->image);
}

void
cpprof__recorded_set_sort(struct cpprof__recorded_set *set)
{
    size_t i;

    if (set->n)
        cpprof__sort(set->tables, set->n, sizeof *set->tables, compare);
    for (i = 0; i < set->n; i++) { /* in its place for good */
        struct cpprof__recorded_tables *tables = &set->tables[i];

        tables->public.name = tables->name;
        tables->public.owner = *tables->owner ? tables->owner : NULL;
    }
}

size_t
cpprof_recording_heap_count(const struct cpprof_recording *recording)
{
    return recording ? recording->set.n : 0;
}

const struct cpprof_recorded_heap *
cpprof_recording_heap_at(const struct cpprof_recording *recording, size_t index)
{
    return recording && index < recording->set.n
               ? &recording->set.tables[index].public
               : NULL;
}

const struct cpprof_recorded_waits *
cpprof_recording_waits_at(const struct cpprof_recording *recording,
                          size_t index)
{
    return recording && index < recording->set.n
               ? &recording->set.tables[index].waits
               : NULL;
}

void
cpprof__recorded_set_remove(const struct cpprof__recorded_set *set)
{
    size_t i;

    for (i = 0; i < set->n; i++)
        unlink(set->tables[i].path);
}

void
cpprof__recorded_set_free(struct cpprof__recorded_set *set)
{
    cpprof__free(set->tables);
    memset(set, 0, sizeof *set);
}

/* ---- writing ---------------------------------------------------------- */

static enum cpprof_status
fail(struct cpprof_writer writer, enum cpprof_status status)
{
    cpprof__writer_refuse(&writer);
    return status;
}

/* Beside that file. */
static void
load_scripts(const char *path, struct loaded *loaded)
{
    char directory[PATH_MAX];
    const char *end = strrchr(path, '/');
    size_t n = end ? (size_t)(end - path) : 0;

    if (!n || n >= sizeof directory)
        return;
    memcpy(directory, path, n);
    directory[n] = 0;
    cpprof__script_file_read(&loaded->scripts, directory,
                             loaded->head->scripts);
    loaded->tables.scripts = &loaded->scripts;
}

static enum cpprof_status
load_one(const struct cpprof__recorded_set *set, size_t index,
         struct loaded *loaded, struct cpprof_error *error)
{
    if (index >= set->n)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "heap %zu of a recording with %zu", index, set->n);
    if (!load(set->tables[index].path, loaded))
        return cpprof__fail(error, CPPROF_SYSTEM, errno, "%s: %s",
                            set->tables[index].path, strerror(errno));
    load_scripts(set->tables[index].path, loaded);
    return CPPROF_OK;
}

static void
set_source(struct cpprof__source *source, const struct loaded *l,
           enum cpprof_symbolize symbolize)
{
    source->heap = &l->heap;
    source->tables = &l->tables;
    source->pid = l->head->pid;
    if (symbolize != CPPROF_SYMBOLIZE_NONE)
        source->ops = cpprof__kept_symbolizer_load();
    source->time_ns = l->head->end_ns && l->head->end_ns < INT64_MAX
                          ? (int64_t)l->head->end_ns
                          : (int64_t)cpprof__now_ns(CLOCK_REALTIME);
}

static enum cpprof_status
write_waits(const struct loaded *l, bool is_mutex, struct cpprof_writer writer,
            const struct cpprof_profile_options *options,
            struct cpprof_error *error)
{
    struct cpprof__records_form form =
        is_mutex ? cpprof__mutex_form : cpprof__block_form;
    struct cpprof__source source = {0};
    struct cpprof__stack_record *records;
    enum cpprof_status status;
    size_t i, n;

    status = wait_records(l, is_mutex ? CPPROF__WAIT_MUTEX : CPPROF__WAIT_BLOCK,
                          &records, &n, error);
    if (status != CPPROF_OK)
        return fail(writer, status);
    for (i = 0; i < n && !(options->flags & CPPROF_FLAG_LABELS); i++)
        records[i].labels = 0;
    set_source(&source, l, options->symbolize);
    form.source = &source;
    status = cpprof__records_write(&form, records, n, options, writer, error);
    cpprof__free(records);
    return status;
}

static enum cpprof_status
write_wall(struct loaded *l, struct cpprof_writer writer,
           const struct cpprof_profile_options *options,
           struct cpprof_error *error)
{
    struct cpprof__source source = {0};

    if (!l->wall_summary.options.rate_hz)
        return fail(writer, cpprof__fail(error, CPPROF_INVALID, 0,
                                         "no wall profile was recorded"));
    set_source(&source, l, options->symbolize);
    l->wall_summary.source = &source;
    l->wall_summary.options.symbolize = options->symbolize;
    return cpprof__wall_write(&l->wall, &l->wall_summary, writer, error);
}

enum cpprof_status
cpprof_recording_write_waits(struct cpprof_recording *recording, size_t index,
                             const char *name,
                             const struct cpprof_writer *given_writer,
                             const struct cpprof_profile_options *given,
                             struct cpprof_error *error)
{
    struct cpprof_profile_options options = {.size = sizeof options};
    bool is_wall, is_mutex;
    struct cpprof_writer writer;
    enum cpprof_status status;
    struct loaded l;

    CPPROF__NEED_BESIDES(given_writer, error, recording && name);
    is_wall = !strcmp(name, "wall") || !strcmp(name, "offcpu");
    is_mutex = !strcmp(name, "mutex");
    status = cpprof__writer_take(given_writer, &writer, error);
    if (status == CPPROF_OK)
        status = cpprof__options(&options, sizeof options, given,
                                 "cpprof_profile_options", error);
    if (status == CPPROF_OK)
        status = cpprof__options_flags(options.flags, CPPROF__PROFILE_FLAGS,
                                       options.symbolize, error);
    if (status == CPPROF_OK && strcmp(name, "block") && !is_mutex && !is_wall)
        status = cpprof__fail(error, CPPROF_INVALID, 0,
                              "no waits are called %s", name);
    if (status == CPPROF_OK)
        status = load_one(&recording->set, index, &l, error);
    if (status != CPPROF_OK)
        return fail(writer, status);
    status = is_wall ? write_wall(&l, writer, &options, error)
                     : write_waits(&l, is_mutex, writer, &options, error);
    unload(&l);
    return status;
}

enum cpprof_status
cpprof_recording_write_heap(struct cpprof_recording *recording, size_t index,
                            const struct cpprof_writer *given_writer,
                            const struct cpprof_heap_options *given,
                            struct cpprof_error *error)
{
    struct cpprof_heap_options options = {.size = sizeof options};
    struct cpprof__source source = {0};
    struct cpprof_writer writer;
    enum cpprof_status status;
    struct loaded l;

    CPPROF__NEED_BESIDES(given_writer, error, recording);
    status = cpprof__writer_take(given_writer, &writer, error);
    if (status == CPPROF_OK)
        status = cpprof__options(&options, sizeof options, given,
                                 "cpprof_heap_options", error);
    if (status == CPPROF_OK)
        status = cpprof__options_flags(options.flags, CPPROF__HEAP_FLAGS,
                                       options.symbolize, error);
    if (status == CPPROF_OK)
        status = load_one(&recording->set, index, &l, error);
    if (status != CPPROF_OK)
        return fail(writer, status);
    set_source(&source, &l, options.symbolize);
    status = cpprof__heap_profile_write(&source, &options, writer, error);
    unload(&l);
    return status;
}
