/* SPDX-License-Identifier: MIT */
/*
 * The CPU time of a process that may not be attached to, by perf events: its
 * stacks are copied by the kernel, walked here and counted in a store. At the
 * end the folder has the files that the library would have left there, so all
 * that follows is the same. They are written at the end.
 */
#include "cli/record/outside.h"

#include "arch/clock.h"
#include "cli/attach/attach.h"
#include "collect/signal/tables/own_frames.h"
#include "collect/store/mappings.h"
#include "collect/store/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RATE_DEFAULT_HZ 100
#define DEPTH_DEFAULT   128

/* Of a ring that nothing was ever put into. */
#define RING_WORDS 8

struct cpprof__outside {
    struct cpprof__target target;
    struct cpprof__events *events;
    struct cpprof__spool_head head;
    struct cpprof__ring ring; /* says how many were lost */
    struct cpprof__store store;
    void *block;
    struct cpprof__mappings mappings;
    size_t max_depth;
    uint64_t cpu_start_ns;
    uint64_t n_ended;  /* threads */
    uint32_t n_stores; /* that are full, and in the folder */
    char folder[PATH_MAX];
    bool seen_maps;  /* since the last round */
    bool has_mapped; /* since they were read */
};

/* ------------------------------------------------------------- mappings ----
 */

#define DELETED " (deleted)"

void
cpprof__mapped_build_id(pid_t pid, const struct cpprof_map *map,
                        char build_id[CPPROF_BUILD_ID_MAX])
{
    char path[PATH_MAX + 32];

    snprintf(path, sizeof path, "/proc/%d/map_files/%llx-%llx", (int)pid,
             (unsigned long long)map->start, (unsigned long long)map->limit);
    if (map->inode && !map->deleted && access(path, R_OK))
        snprintf(path, sizeof path, "/proc/%d/root%.*s", (int)pid,
                 (int)map->n_path, map->path);
    if (!map->inode ||
        cpprof_build_id_of_file(path, build_id, NULL) != CPPROF_OK)
        *build_id = 0;
}

/* The executable mappings that are there now. The first is the program. */
static void
add_mapping(struct cpprof__outside *o, const struct cpprof_map *map)
{
    struct cpprof__store_mapping mapping = {.start = map->start,
                                            .limit = map->limit,
                                            .offset = map->offset,
                                            .inode = map->inode};
    char path[PATH_MAX + 32], build_id[CPPROF_BUILD_ID_MAX];
    size_t n;

    cpprof__mapped_build_id(o->target.pid, map, build_id);
    /* Whatever has the path now is not what runs: it has to be known by its
     * build id, or to be no path. */
    n = (size_t)snprintf(path, sizeof path, "%.*s%s", (int)map->n_path,
                         map->path, map->deleted && !*build_id ? DELETED : "");
    mapping.path = cpprof__store_add_text(&o->store, path, n);
    mapping.build_id =
        cpprof__store_add_text(&o->store, build_id, strlen(build_id));
    cpprof__store_add_mapping(&o->store, &mapping);
}

static bool
is_same(const struct cpprof__outside *o,
        const struct cpprof__store_mapping *known, const struct cpprof_map *map)
{
    const char *path = cpprof__store_text(&o->store, known->path);

    return known->start == map->start && known->limit == map->limit &&
           known->offset == map->offset && known->inode == map->inode &&
           !strncmp(path, map->path, map->n_path) &&
           (!path[map->n_path] ||
            (map->deleted && !strcmp(path + map->n_path, DELETED)));
}

static void
see_mapping(struct cpprof__outside *o, const struct cpprof_map *map)
{
    uint32_t i, n = o->store.head->n_mappings;

    for (i = 0; i < n && !is_same(o, &o->store.mappings[i], map);)
        i++;
    if (i < n)
        o->store.mappings[i].is_gone = 0;
    else
        add_mapping(o, map);
}

static void
see_mappings(struct cpprof__outside *o, const char *exe, bool only_exe)
{
    const char *at = (char *)o->target.maps.data;
    const char *end = at ? at + o->target.maps.n - 1 : at;
    struct cpprof_map map = {.size = sizeof map};

    while (at && cpprof_maps_next(&at, end, &map))
        if (cpprof_map_is_listed(&map) &&
            (!only_exe ||
             (strlen(exe) == map.n_path && !memcmp(exe, map.path, map.n_path))))
            see_mapping(o, &map);
}

/* Of the maps that were read into the target. */
static void
take_mappings(struct cpprof__outside *o)
{
    char path[64], exe[PATH_MAX];
    ssize_t n;
    uint32_t i;

    snprintf(path, sizeof path, "/proc/%d/exe", (int)o->target.pid);
    n = readlink(path, exe, sizeof exe - 1);
    exe[n < 0 ? 0 : n] = 0;
    for (i = 0; i < o->store.head->n_mappings; i++)
        o->store.mappings[i].is_gone = 1;
    see_mappings(o, exe, true);
    see_mappings(o, exe, false);
    cpprof__mappings_init(&o->mappings, &o->store, false);
}

/* Lines of a text of maps that name code; the next, or false. */
static bool
next_listed(const char **at, const char *end, struct cpprof_map *map)
{
    while (*at && cpprof_maps_next(at, end, map))
        if (cpprof_map_is_listed(map))
            return true;
    return false;
}

static bool
is_same_code(const struct cpprof__buffer *a, const struct cpprof__buffer *b)
{
    const char *at_a = (char *)a->data, *at_b = (char *)b->data;
    struct cpprof_map x = {.size = sizeof x}, y = {.size = sizeof y};
    bool has_x, has_y;

    do {
        has_x =
            next_listed(&at_a, at_a ? (char *)a->data + a->n - 1 : at_a, &x);
        has_y =
            next_listed(&at_b, at_b ? (char *)b->data + b->n - 1 : at_b, &y);
        if (has_x && has_y &&
            (x.start != y.start || x.limit != y.limit || x.offset != y.offset ||
             x.inode != y.inode || x.n_path != y.n_path ||
             memcmp(x.path, y.path, x.n_path) != 0))
            return false;
    } while (has_x && has_y);
    return has_x == has_y;
}

/* Has the process loaded code, or another program? Files are read only where
 * it has. */
static void
look_again(struct cpprof__outside *o)
{
    struct cpprof__buffer now = {0};

    o->has_mapped = false;
    cpprof__read_proc(&now, "/proc/%d/maps", (int)o->target.pid);
    /* Nothing: it ends, and what was known is all that there will be. */
    if (!now.data || now.n < 2 || is_same_code(&now, &o->target.maps)) {
        cpprof__buffer_free(&now);
        return;
    }
    cpprof__images_free(&o->target.images);
    cpprof__buffer_free(&o->target.maps);
    o->target.maps = now;
    cpprof__images_read(&o->target.images, o->target.pid, (char *)now.data,
                        now.n - 1);
    take_mappings(o);
}

/* It runs another program: nothing is known of it. */
static void
forget_code(struct cpprof__outside *o)
{
    cpprof__images_free(&o->target.images);
    o->target.images = (struct cpprof__images){0};
    cpprof__buffer_free(&o->target.maps);
    o->target.maps = (struct cpprof__buffer){0};
    take_mappings(o);
}

/* -------------------------------------------------------------- samples ----
 */

static bool
write_file(const struct cpprof__outside *o, const char *name, const void *bytes,
           size_t n)
{
    char path[CPPROF__SPOOL_PATH_BYTES];
    bool is_written;
    int fd;

    snprintf(path, sizeof path, "%s/%s", o->folder, name);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    is_written = write(fd, bytes, n) == (ssize_t)n;
    close(fd);
    return is_written;
}

static bool
write_store(struct cpprof__outside *o)
{
    char name[64];

    snprintf(name, sizeof name, "%d.0.%u", (int)o->head.pid, o->n_stores++);
    return write_file(o, name, o->block, cpprof__store_shared_bytes());
}

static bool
begin_store(struct cpprof__outside *o)
{
    if (o->block)
        munmap(o->block, cpprof__store_bytes());
    o->block =
        cpprof__map_file(-1, 0, cpprof__store_bytes(), PROT_READ | PROT_WRITE);
    if (!o->block || !cpprof__store_make(&o->store, o->block))
        return false;
    take_mappings(o);
    return true;
}

/* As often as weight; what finds no room is lost. */
static void
add_stack(struct cpprof__outside *o, const uint64_t *pcs, size_t n,
          uint64_t weight)
{
    uint32_t mappings[CPPROF__RING_MAX_PCS];

    o->head.n_records += weight;
    cpprof__mappings_find(&o->mappings, pcs, n, mappings);
    if (cpprof__store_add(&o->store, pcs, mappings, n, 0, weight))
        return;
    if (write_store(o) && begin_store(o)) {
        cpprof__mappings_find(&o->mappings, pcs, n, mappings);
        if (cpprof__store_add(&o->store, pcs, mappings, n, 0, weight))
            return;
    }
    o->ring.lost += weight;
}

static void
take(void *ctx, const struct cpprof__event *event)
{
    static const uint64_t own[] = {
        [CPPROF__STACK_CUT] = CPPROF__FRAME_TRUNCATED,
        [CPPROF__STACK_BROKEN] = CPPROF__FRAME_BROKEN};
    struct cpprof__outside *o = ctx;
    uint64_t pcs[CPPROF__RING_MAX_PCS];
    uint32_t mappings[CPPROF__RING_MAX_PCS];
    enum cpprof__stack_end end;
    size_t n;

    if (event->kind == CPPROF__EVENT_ENDED) {
        o->n_ended++;
        return;
    }
    if (event->kind != CPPROF__EVENT_TICK) {
        o->has_mapped = true;
        if (event->kind == CPPROF__EVENT_EXEC)
            forget_code(o);
        return;
    }
    if (o->has_mapped && !event->exec_follows)
        look_again(o);
    n = cpprof__stack_walk(&o->target, event, pcs, o->max_depth, &end);
    cpprof__mappings_find(&o->mappings, pcs, n, mappings);
    if ((end == CPPROF__STACK_BROKEN || mappings[0] == CPPROF__NO_MAPPING) &&
        !o->seen_maps && !event->exec_follows) {
        o->seen_maps = true;
        look_again(o);
        n = cpprof__stack_walk(&o->target, event, pcs, o->max_depth, &end);
    }
    if (end != CPPROF__STACK_WHOLE)
        pcs[n++] = own[end];
    add_stack(o, pcs, n, 1);
}

/* Tunable. A part of all ticks is missing by chance. */
#define CHANCE_PART 20

/*
 * The time of threads that ended before a period of their own was over, by the
 * clock of the process: less than a period of each. That clock counts time in
 * the kernel, too: where it is not sampled nothing is known of them.
 */
static void
charge_short_lived(struct cpprof__outside *o)
{
    static const uint64_t frame = CPPROF__FRAME_EXITED;
    uint64_t n_clock = o->head.cpu_ns / o->head.period_ns;
    uint64_t n_known = o->head.n_records + o->ring.lost + o->head.n_threads / 2;
    uint64_t n = n_clock > n_known ? n_clock - n_known : 0;

    if (n > o->n_ended)
        n = o->n_ended;
    if (!cpprof__events_are_user_only(o->events) && n > n_clock / CHANCE_PART)
        add_stack(o, &frame, 1, n);
}

/* ---------------------------------------------------------- the process ----
 */

/* The time that it has used; 0: it is gone. Fields 14 and 15 of proc(5). */
static uint64_t
cpu_ns(pid_t pid)
{
    struct cpprof__buffer text = {0};
    unsigned long user = 0, kernel = 0;
    const char *at;

    cpprof__read_proc(&text, "/proc/%d/stat", (int)pid);
    at = text.data ? strrchr((char *)text.data, ')') : NULL;
    if (!at || sscanf(at + 1,
                      " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
                      "%lu %lu",
                      &user, &kernel) != 2)
        user = kernel = 0;
    cpprof__buffer_free(&text);
    return (user + kernel) *
           (CPPROF__NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
}

static uint32_t
count_threads(pid_t pid)
{
    struct cpprof__buffer status = {0};
    char value[32];

    cpprof__read_proc(&status, "/proc/%d/status", (int)pid);
    cpprof__status_field(&status, "Threads", value, sizeof value);
    cpprof__buffer_free(&status);
    return (uint32_t)strtoul(value, NULL, 10);
}

static void
fill_head(struct cpprof__outside *o, pid_t inside, uint32_t rate_hz)
{
    struct cpprof__spool_head *head = &o->head;

    memcpy(head->magic, CPPROF__SPOOL_MAGIC, sizeof head->magic);
    head->pid = inside;
    head->state = CPPROF__SPOOL_ENDED;
    head->rate_hz = rate_hz;
    head->period_ns = CPPROF__NS_PER_S / rate_hz;
    head->ring_words = RING_WORDS;
    head->start_ns = cpprof__now_ns(CLOCK_REALTIME);
    head->start_mono_ns = cpprof__now_ns(CLOCK_MONOTONIC);
    head->n_threads = count_threads(o->target.pid);
    head->notes = CPPROF__SPOOL_OUTSIDE;
    if (cpprof__events_are_user_only(o->events))
        head->notes |= CPPROF__SPOOL_NO_KERNEL;
    snprintf(head->engine, sizeof head->engine, "perf");
    snprintf(head->name, sizeof head->name, "%s", o->target.name);
    o->cpu_start_ns = cpu_ns(o->target.pid);
}

struct cpprof__outside *
cpprof__outside_begin(const struct cpprof__target *target, pid_t inside,
                      const struct cpprof__record_options *options,
                      const char *folder, unsigned n_processes, int *error)
{
    uint32_t rate_hz = options->rate_hz ? options->rate_hz : RATE_DEFAULT_HZ;
    struct cpprof__outside *o = calloc(1, sizeof *o);
    bool done;

    *error = ENOMEM;
    if (!o)
        return NULL;
    o->target.pid = target->pid;
    memcpy(o->target.name, target->name, sizeof o->target.name);
    snprintf(o->folder, sizeof o->folder, "%s", folder);
    o->max_depth = options->max_depth ? options->max_depth : DEPTH_DEFAULT;
    done = cpprof__attach_read(&o->target) && begin_store(o);
    if (done)
        o->events =
            cpprof__events_open(target->pid, rate_hz, n_processes, error);
    if (!o->events) {
        cpprof__outside_free(o);
        return NULL;
    }
    fill_head(o, inside, rate_hz);
    return o;
}

void
cpprof__outside_read(struct cpprof__outside *o)
{
    uint64_t now = cpu_ns(o->target.pid);
    uint32_t n_threads = count_threads(o->target.pid);

    o->seen_maps = false;
    o->ring.lost += cpprof__events_read(o->events, take, o);
    o->head.last_mono_ns = cpprof__now_ns(CLOCK_MONOTONIC);
    if (now > o->cpu_start_ns)
        o->head.cpu_ns = now - o->cpu_start_ns;
    if (n_threads > o->head.n_threads)
        o->head.n_threads = n_threads;
}

bool
cpprof__outside_end(struct cpprof__outside *o)
{
    static char file[CPPROF__SPOOL_RING_OFFSET + 4096];
    size_t n = CPPROF__SPOOL_RING_OFFSET + cpprof__ring_bytes(RING_WORDS);
    char name[32];

    cpprof__outside_read(o);
    charge_short_lived(o);
    o->ring.mask = RING_WORDS - 1;
    memcpy(file, &o->head, sizeof o->head);
    memcpy(file + CPPROF__SPOOL_RING_OFFSET, &o->ring, sizeof o->ring);
    snprintf(name, sizeof name, "%d.0", (int)o->head.pid);
    return write_store(o) && write_file(o, name, file, n);
}

void
cpprof__outside_free(struct cpprof__outside *o)
{
    if (o->events)
        cpprof__events_close(o->events);
    if (o->block)
        munmap(o->block, cpprof__store_bytes());
    cpprof__attach_free(&o->target);
    free(o);
}
