/* SPDX-License-Identifier: MIT */
/*
 * Reads /tmp/perf-PID.map, and finds jit-PID.dump. Everyone may write to that
 * directory, so a file counts only if it is a plain file of the profiled
 * process's user, of ours or of root. Its content is not trusted.
 */
#include "symbol/perf_map.h"

#include "arch/clock.h"
#include "base/text.h"
#include "own/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of the file that is read: what the map can cost in memory, four times. */
#define LARGEST_BYTES (64 * 1024 * 1024)

#define LOOK_EVERY_NS 50000000u

void
cpprof__perf_map_init(struct cpprof__perf_map *map,
                      const struct cpprof__fetcher *fetcher, int pid)
{
    memset(map, 0, sizeof *map);
    map->fetcher = fetcher;
    map->pid = pid;
}

void
cpprof__perf_map_free(struct cpprof__perf_map *map)
{
    cpprof__jit_table_free(&map->map.table);
    cpprof__jit_table_free(&map->dump.table);
    cpprof__free(map->dump_path);
    map->dump_path = NULL;
}

/* The pid as the process itself sees it: the last one of "NSpid:" in
 * /proc/PID/status, the one of the innermost namespace. A stream would have its
 * memory from the program's malloc. */
static int
pid_inside(const char *proc, int pid)
{
    char text[8192];
    const char *at, *end;
    ssize_t n;
    int fd, inside = pid;

    snprintf(text, sizeof text, "%s/%d/status", proc, pid);
    fd = open(text, O_RDONLY | O_CLOEXEC);
    n = read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
    at = strstr(text, "\nNSpid:");
    end = at ? strchr(at + 1, '\n') : NULL;
    if (end) {
        at = memrchr(at, '\t', (size_t)(end - at));
        inside = at ? atoi(at + 1) : 0;
    }
    close(fd);
    return inside > 0 ? inside : pid;
}

static bool
is_trusted(const struct stat *file, const char *proc, int pid)
{
    char path[64];
    struct stat process;

    if (!S_ISREG(file->st_mode))
        return false;
    if (file->st_uid == 0 || file->st_uid == geteuid())
        return true;
    snprintf(path, sizeof path, "%s/%d", proc, pid);
    return stat(path, &process) == 0 && process.st_uid == file->st_uid;
}

/* A descriptor and what fstat says, or -1. */
static int
open_trusted(const char *path, const char *proc, int pid, struct stat *info)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd >= 0 && fstat(fd, info) == 0 && is_trusted(info, proc, pid))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Where the process sees it, if it has a file system of its own; or here, as
 * `path`. */
static int
open_file(const struct cpprof__perf_map *map, const char *inside,
          const char *path, struct stat *info)
{
    const char *proc = cpprof__proc_of(map->fetcher);
    char rooted[PATH_MAX + 64];
    int fd;

    snprintf(rooted, sizeof rooted, "%s/%d/root%s", proc, map->pid, inside);
    fd = open_trusted(rooted, proc, map->pid, info);
    return fd >= 0 ? fd : open_trusted(path, proc, map->pid, info);
}

static int
open_map(const struct cpprof__perf_map *map, struct stat *info)
{
    char inside[64], path[64];

    snprintf(inside, sizeof inside, "/tmp/perf-%d.map",
             pid_inside(cpprof__proc_of(map->fetcher), map->pid));
    snprintf(path, sizeof path, "/tmp/perf-%d.map", map->pid);
    return open_file(map, inside, path, info);
}

/* A hex number that a space ends; advances past both. */
static bool
read_hex(const char **at, const char *end, uint64_t *value)
{
    const char *p = *at;
    uint64_t v = 0;

    if (end - p > 2 && p[0] == '0' && (p[1] | 0x20) == 'x')
        p += 2;
    for (; p < end && *p != ' '; p++) {
        unsigned digit = cpprof__digit(*p);

        if (digit > 15 || v >> 60)
            return false;
        v = v << 4 | digit;
    }
    if (p == *at || p == end)
        return false;
    *value = v;
    *at = p + 1;
    return true;
}

/* One line without its end; one that is malformed is skipped. */
static void
add_line(struct cpprof__jit_table *t, const char *line, const char *end)
{
    struct cpprof__jit_code code = {0};

    if (end > line && end[-1] == '\r')
        end--;
    if (!read_hex(&line, end, &code.start) ||
        !read_hex(&line, end, &code.n_bytes) || line == end ||
        code.n_bytes > UINT64_MAX - code.start)
        return;
    code.name = (uint32_t)(line - (const char *)t->text.data);
    code.n_name = (uint32_t)(end - line);
    code.file_end = code.name + code.n_name;
    cpprof__jit_table_add(t, &code);
}

/* A last line without end is still being written. */
static void
parse(struct cpprof__jit_table *t)
{
    const char *at = (const char *)t->text.data;
    const char *end = at + t->text.n;
    const char *newline;

    for (; at < end && (newline = memchr(at, '\n', (size_t)(end - at)));
         at = newline + 1)
        add_line(t, at, newline);
    cpprof__jit_table_seal(t);
}

/* Is the file another one than was read? It is taken for the one read now. */
static bool
is_new(struct cpprof__jit_file *file, const struct stat *info)
{
    bool is_same = file->inode == info->st_ino &&
                   file->device == info->st_dev &&
                   file->n_bytes == info->st_size &&
                   file->modified.tv_sec == info->st_mtim.tv_sec &&
                   file->modified.tv_nsec == info->st_mtim.tv_nsec;

    file->device = info->st_dev;
    file->inode = info->st_ino;
    file->n_bytes = info->st_size;
    file->modified = info->st_mtim;
    return !is_same;
}

static void
warn(const struct cpprof__perf_map *map, const char *format, ...)
{
    char text[PATH_MAX + 128];
    va_list args;

    if (!map->fetcher->warn)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    map->fetcher->warn(map->fetcher->ctx, text);
}

/* Say once that a file was not read to its end. */
static void
tell_if_cut(struct cpprof__perf_map *map, const char *path, int error,
            const struct cpprof__jit_table *table)
{
    if ((error != EFBIG && !table->is_cut) || map->has_told_cut)
        return;
    map->has_told_cut = true;
    warn(map,
         "%s: only the first %d MB and %d functions are read; code made later "
         "may have no names or old ones",
         path, LARGEST_BYTES >> 20, CPPROF__JIT_CODES);
}

static void
refresh_map(struct cpprof__perf_map *map)
{
    struct stat info;
    int fd = open_map(map, &info), error;
    char path[64];

    if (fd < 0)
        return;
    if (is_new(&map->map, &info)) {
        cpprof__jit_table_free(&map->map.table);
        error = cpprof__buffer_read(&map->map.table.text, fd, LARGEST_BYTES);
        parse(&map->map.table);
        snprintf(path, sizeof path, "/tmp/perf-%d.map", map->pid);
        tell_if_cut(map, path, error, &map->map.table);
    }
    close(fd);
}

static void
refresh_dump(struct cpprof__perf_map *map)
{
    struct cpprof__buffer bytes = {0};
    struct stat info;
    int fd = map->dump_path
                 ? open_file(map, map->dump_path, map->dump_path, &info)
                 : -1;
    int error;

    if (fd < 0)
        return;
    if (is_new(&map->dump, &info)) {
        bool is_first = !map->has_dump;

        map->has_dump = true;
        cpprof__jit_table_free(&map->dump.table);
        error = cpprof__buffer_read(&bytes, fd, LARGEST_BYTES);
        if (!cpprof__jit_dump_read(&map->dump.table, bytes.data, bytes.n) &&
            is_first)
            warn(map,
                 "%s: is no jitdump file of this machine; code made at run "
                 "time may have no names",
                 map->dump_path);
        tell_if_cut(map, map->dump_path, error, &map->dump.table);
        cpprof__buffer_free(&bytes);
    }
    close(fd);
}

static void
refresh(struct cpprof__perf_map *map)
{
    uint64_t before = cpprof__now_ns(CLOCK_MONOTONIC);
    uint64_t after;

    if (before < map->next_look_ns)
        return;
    refresh_map(map);
    refresh_dump(map);
    after = cpprof__now_ns(CLOCK_MONOTONIC);
    map->next_look_ns = after + LOOK_EVERY_NS + (after - before) * 20;
}

void
cpprof__perf_map_see(struct cpprof__perf_map *map, const char *path)
{
    int pid = cpprof__jit_dump_pid(path);

    if (!pid || map->dump_path ||
        (pid != map->pid &&
         pid != pid_inside(cpprof__proc_of(map->fetcher), map->pid)))
        return;
    map->dump_path = cpprof__strdup(path);
    map->next_look_ns = 0;
}

bool
cpprof__perf_map_find(struct cpprof__perf_map *map, uint64_t pc,
                      uint64_t n_bytes, struct cpprof__jit_place *place)
{
    uint64_t n_map_bytes = map->dump_path ? UINT64_MAX : n_bytes;

    refresh(map);
    return cpprof__jit_table_find(&map->dump.table, pc, n_bytes, place) ||
           cpprof__jit_table_find(&map->map.table, pc, n_map_bytes, place);
}
