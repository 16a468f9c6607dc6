/* SPDX-License-Identifier: MIT */
/*
 * One line of /proc/PID/maps, as the kernel prints it (proc(5)):
 *
 *     start-limit perms offset major:minor inode     path
 *
 * Numbers are hexadecimal but for the inode. The path begins after the spaces
 * behind the inode and goes to the end of the line, so it may hold spaces
 * itself; a newline in a file name is printed as "\012".
 */

#include "base/text.h"
#include <cpprof/object.h>
#include <string.h>

#define DELETED " (deleted)"

/* What is left of one line; sticky: a field that does not parse empties it. */
struct line_reader {
    const char *next;
    const char *end;
    bool bad;
};

static uint64_t
number(struct line_reader *r, unsigned base)
{
    const char *start = r->next;
    uint64_t v = 0;

    while (r->next < r->end && cpprof__digit(*r->next) < base) {
        if (__builtin_mul_overflow(v, base, &v) ||
            __builtin_add_overflow(v, cpprof__digit(*r->next), &v))
            r->bad = true;
        r->next++;
    }
    r->bad |= r->next == start;
    return v;
}

static void
expect(struct line_reader *r, char c)
{
    if (r->next < r->end && *r->next == c)
        r->next++;
    else
        r->bad = true;
}

/* Is c what the kernel prints at this place of the permissions? */
static bool
is_perm(size_t i, char c)
{
    static const char set[4][3] = {"r-", "w-", "x-", "sp"};

    return c && strchr(set[i], c) != NULL;
}

static void
perms(struct line_reader *r, char out[4])
{
    size_t i;

    for (i = 0; i < 4; i++) {
        if (r->next == r->end || !is_perm(i, *r->next)) {
            r->bad = true;
            return;
        }
        out[i] = *r->next++;
    }
}

static void
path(struct line_reader *r, struct cpprof_map *line)
{
    size_t n = sizeof DELETED - 1;

    if (r->next < r->end && *r->next != ' ')
        r->bad = true;
    while (r->next < r->end && *r->next == ' ')
        r->next++;
    line->path = r->next;
    line->n_path = (size_t)(r->end - r->next);
    line->deleted = line->n_path >= n && memcmp(r->end - n, DELETED, n) == 0;
    if (line->deleted)
        line->n_path -= n;
}

static bool
parse(struct line_reader *r, struct cpprof_map *line)
{
    memset(line, 0, sizeof *line);
    line->start = number(r, 16);
    expect(r, '-');
    line->limit = number(r, 16);
    expect(r, ' ');
    perms(r, line->perms);
    expect(r, ' ');
    line->offset = number(r, 16);
    expect(r, ' ');
    line->dev_major = (uint32_t)number(r, 16);
    expect(r, ':');
    line->dev_minor = (uint32_t)number(r, 16);
    expect(r, ' ');
    line->inode = number(r, 10);
    path(r, line);
    return !r->bad && line->start < line->limit;
}

bool
cpprof_maps_next(const char **text, const char *end, struct cpprof_map *map)
{
    const size_t size = map && text && *text ? map->size : 0;
    struct cpprof_map line;

    while (size >= sizeof size && *text < end) {
        const char *newline = memchr(*text, '\n', (size_t)(end - *text));
        struct line_reader r = {*text, newline ? newline : end, false};

        *text = newline ? newline + 1 : end;
        if (!parse(&r, &line))
            continue;
        line.size = size;
        memcpy(map, &line, size < sizeof line ? size : sizeof line);
        return true;
    }
    return false;
}

bool
cpprof_map_is_listed(const struct cpprof_map *line)
{
    return line && line->perms[2] == 'x' && (line->inode || line->n_path);
}
