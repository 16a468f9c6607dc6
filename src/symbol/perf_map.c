/* SPDX-License-Identifier: MIT */
/*
 * Reads /tmp/perf-PID.map. Everyone may write to that directory, so the file
 * counts only if it is a plain file of the profiled process's user, of ours or
 * of root. Its content is not trusted.
 */
#include "symbol/perf_map.h"

#include "arch/clock.h"
#include "base/text.h"
#include "symbol/elf/array.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of the file that is read: what the map can cost in memory, four times. */
#define LARGEST_BYTES (64 * 1024 * 1024)

#define LOOK_EVERY_NS 50000000u

void
cpprof__perf_map_init(struct cpprof__perf_map *map, const char *proc, int pid)
{
    memset(map, 0, sizeof *map);
    map->proc = proc;
    map->pid = pid;
}

void
cpprof__perf_map_free(struct cpprof__perf_map *map)
{
    cpprof__buffer_free(&map->text);
    cpprof__ranges_free(&map->ranges);
    CPPROF__ARRAY_FREE(&map->symbols);
}

/* The pid as the process itself sees it: the last one of "NSpid:" in
 * /proc/PID/status, the one of the innermost namespace. */
static int
pid_inside(const char *proc, int pid)
{
    char path[64];
    char line[512];
    int inside = pid;
    FILE *file;

    snprintf(path, sizeof path, "%s/%d/status", proc, pid);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        char *tab = strrchr(line, '\t');

        if (strncmp(line, "NSpid:", 6) == 0 && tab)
            inside = atoi(tab + 1);
    }
    if (file)
        fclose(file);
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

static int
open_map(const char *proc, int pid, struct stat *info)
{
    char path[128];
    int fd;

    /* Where the process sees it, if it has a /tmp of its own. */
    snprintf(path, sizeof path, "%s/%d/root/tmp/perf-%d.map", proc, pid,
             pid_inside(proc, pid));
    fd = open_trusted(path, proc, pid, info);
    if (fd >= 0)
        return fd;
    snprintf(path, sizeof path, "/tmp/perf-%d.map", pid);
    return open_trusted(path, proc, pid, info);
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
add_line(struct cpprof__perf_map *map, const char *line, const char *end)
{
    struct cpprof__range range = {0};
    uint64_t n_bytes;

    if (end > line && end[-1] == '\r')
        end--;
    if (!read_hex(&line, end, &range.start) ||
        !read_hex(&line, end, &n_bytes) || line == end ||
        n_bytes > UINT64_MAX - range.start ||
        !CPPROF__BOUNDED_ROOM(&map->symbols))
        return;
    range.limit = range.start + n_bytes;
    range.value = (uint32_t)map->symbols.n;
    range.rank = range.value;
    map->symbols.at[map->symbols.n++] = (struct cpprof__perf_symbol){
        (uint32_t)(line - (const char *)map->text.data),
        (uint32_t)(end - line)};
    cpprof__ranges_add(&map->ranges, range);
}

/* A last line without end is still being written. */
static void
parse(struct cpprof__perf_map *map)
{
    const char *at = (const char *)map->text.data;
    const char *end = at + map->text.n;
    const char *newline;

    for (; at < end && (newline = memchr(at, '\n', (size_t)(end - at)));
         at = newline + 1)
        add_line(map, at, newline);
    cpprof__ranges_seal(&map->ranges);
}

static bool
is_same(const struct cpprof__perf_map *map, const struct stat *info)
{
    return map->inode == info->st_ino && map->device == info->st_dev &&
           map->n_bytes == info->st_size &&
           map->modified.tv_sec == info->st_mtim.tv_sec &&
           map->modified.tv_nsec == info->st_mtim.tv_nsec;
}

static void
load(struct cpprof__perf_map *map, int fd, const struct stat *info)
{
    cpprof__perf_map_free(map);
    map->device = info->st_dev;
    map->inode = info->st_ino;
    map->n_bytes = info->st_size;
    map->modified = info->st_mtim;
    cpprof__buffer_read(&map->text, fd, LARGEST_BYTES);
    parse(map);
}

static void
refresh(struct cpprof__perf_map *map)
{
    uint64_t before = cpprof__now_ns(CLOCK_MONOTONIC);
    uint64_t after;
    struct stat info;
    int fd;

    if (before < map->next_look_ns)
        return;
    fd = open_map(map->proc, map->pid, &info);
    if (fd >= 0 && !is_same(map, &info))
        load(map, fd, &info);
    if (fd >= 0)
        close(fd);
    after = cpprof__now_ns(CLOCK_MONOTONIC);
    map->next_look_ns = after + LOOK_EVERY_NS + (after - before) * 20;
}

const char *
cpprof__perf_map_find(struct cpprof__perf_map *map, uint64_t pc, size_t *n)
{
    const struct cpprof__range *range;

    refresh(map);
    range = cpprof__ranges_find(&map->ranges, pc);
    if (!range)
        return NULL;
    *n = map->symbols.at[range->value].n;
    return (const char *)map->text.data + map->symbols.at[range->value].offset;
}
