/* SPDX-License-Identifier: MIT */
/*
 * Reads the maps, finds heaps and stacks in them, and marks from the rest. Maps
 * are read once, before anything else is mapped, so our own memory is not among
 * them.
 */
#include "collect/leak/roots.h"

#include "collect/leak/glibc.h"
#include "collect/leak/written.h"
#include "own/sort.h"
#include <cpprof/object.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE CPPROF__PAGE

/* Below the stack pointer, and still in use (x86-64 psABI, 3.2.2). */
#define RED_ZONE 128u

/* Bytes from the thread pointer in which glibc's struct pthread ends, and
 * between that end and the stack's. */
#define THREAD_BYTES 0xa00u
#define GUARD_MAX    (UINT64_C(64) << 20)

/* ---- what is mapped --------------------------------------------------- */

static bool
is_path(const struct cpprof_map *line, const char *start)
{
    size_t n = strlen(start);

    return line->n_path >= n && !memcmp(line->path, start, n);
}

/* Files that no disk is behind: what stands in them was written by a program.
 */
static bool
is_memory_file(const struct cpprof_map *line)
{
    return is_path(line, "/dev/zero") || is_path(line, "/dev/shm/") ||
           is_path(line, "/memfd:") || is_path(line, "/SYSV") ||
           is_path(line, "/anon_hugepage");
}

/* Devices may do something when they are read. */
static bool
is_device(const struct cpprof_map *line)
{
    return is_path(line, "/dev/") && !is_memory_file(line);
}

static bool
is_private_memory(const struct cpprof_map *line)
{
    return line->perms[3] == 'p' && !is_path(line, "[v") && !is_device(line);
}

/* Memory that is shared, with other processes or as a file: what is written
 * there may be all that leads to a block. It may have been protected since. */
static bool
is_shared_memory(const struct cpprof_map *line)
{
    return line->perms[3] == 's' && is_path(line, "/") && !is_device(line) &&
           (line->perms[1] == 'w' || is_memory_file(line));
}

static void
add_map(struct cpprof__roots *r, const struct cpprof_map *line)
{
    struct cpprof__leak_map *map = &r->maps[r->n_maps];

    if (r->n_maps == r->max_maps) {
        r->failed = true;
        return;
    }
    *map = (struct cpprof__leak_map){
        .start = line->start,
        .end = line->limit,
        .is_heap = is_path(line, "[heap]"),
        .is_stack = is_path(line, "[stack]"),
        .is_file = line->n_path && *line->path == '/',
        .is_readable = line->perms[0] == 'r',
        .is_writable = line->perms[1] == 'w',
    };
    r->n_maps++;
}

/* Memory that nobody may read now may hold pointers all the same, and may be in
 * the midst of a block. */
static void
make_readable(const struct cpprof__leak_map *map)
{
    if (!map->is_readable)
        syscall(SYS_mprotect, map->start, map->end - map->start, PROT_READ);
}

static void
add_hole_of(struct cpprof__roots *r, const void *memory, size_t n)
{
    cpprof__roots_add_hole(r, (uintptr_t)memory, (uintptr_t)memory + n);
}

bool
cpprof__roots_read(struct cpprof__roots *r, int maps)
{
    struct cpprof_map line = {.size = sizeof line};
    char *text = cpprof__leak_memory(CPPROF__LEAK_MAPS);
    const char *at = text;
    size_t n = 0;
    ssize_t got;
    size_t i;

    r->max_maps = 1u << 17;
    r->max_holes = 1u << 17;
    r->maps = cpprof__leak_memory(r->max_maps * sizeof *r->maps);
    r->holes = cpprof__leak_memory(r->max_holes * sizeof *r->holes);
    if (!text || !r->maps || !r->holes) {
        r->failed = true;
        return true;
    }
    while (n < CPPROF__LEAK_MAPS &&
           (got = read(maps, text + n, CPPROF__LEAK_MAPS - n)) > 0)
        n += (size_t)got;
    if (!n || n == CPPROF__LEAK_MAPS)
        return false;
    while (cpprof_maps_next(&at, text + n, &line))
        if (is_private_memory(&line))
            add_map(r, &line);
    for (i = 0; i < r->n_maps; i++)
        make_readable(&r->maps[i]);
    add_hole_of(r, text, CPPROF__LEAK_MAPS);
    add_hole_of(r, r->maps, r->max_maps * sizeof *r->maps);
    add_hole_of(r, r->holes, r->max_holes * sizeof *r->holes);
    return true;
}

/* The number of the first map that ends behind an address. */
static size_t
first_behind(const struct cpprof__roots *r, uintptr_t address)
{
    size_t from = 0, to = r->n_maps;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (r->maps[middle].end <= address)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

const struct cpprof__leak_map *
cpprof__roots_map(const struct cpprof__roots *r, uintptr_t address)
{
    size_t i = first_behind(r, address);

    return i < r->n_maps && address >= r->maps[i].start ? &r->maps[i] : NULL;
}

void
cpprof__roots_add_hole(struct cpprof__roots *r, uintptr_t start, uintptr_t end)
{
    if (start >= end)
        return;
    if (r->n_holes == r->max_holes)
        r->failed = true;
    else
        r->holes[r->n_holes++] = (struct cpprof__leak_range){start, end};
}

static int
by_start(const void *a, const void *b)
{
    const struct cpprof__leak_range *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

/* ---- marking ---------------------------------------------------------- */

void
cpprof__roots_mark(struct cpprof__roots *r, uintptr_t start, uintptr_t end,
                   bool is_file)
{
    struct cpprof__written pages;

    cpprof__written_begin(&pages, r->pagemap, (start + 7) & ~(uintptr_t)7, end,
                          is_file);
    while (cpprof__written_next(&pages, &start, &end)) {
        r->shared->root_bytes += end - start;
        cpprof__marks_from(r->marks, (const void *)start, (end - start) / 8);
    }
}

void
cpprof__roots_mark_all(struct cpprof__roots *r)
{
    size_t i, hole = 0;

    cpprof__sort(r->holes, r->n_holes, sizeof *r->holes, by_start);
    for (i = 0; i < r->n_maps; i++) {
        const struct cpprof__leak_map *map = &r->maps[i];
        uintptr_t at = map->start;

        while (hole < r->n_holes && r->holes[hole].end <= at)
            hole++;
        while (at < map->end) {
            uintptr_t end = map->end;

            if (hole < r->n_holes && r->holes[hole].start < end)
                end = r->holes[hole].start;
            if (end > at)
                cpprof__roots_mark(r, at, end, map->is_file);
            at = end;
            while (hole < r->n_holes && r->holes[hole].start <= at) {
                if (r->holes[hole].end > at)
                    at = r->holes[hole].end;
                if (r->holes[hole].end > map->end)
                    break;
                hole++;
            }
        }
    }
}

/* ---- memory that is shared, or not for children (MADV_DONTFORK) -------- */

/* Protected pages, too, are read by way of this file (proc_pid_mem(5)). */
static bool
mark_remote(struct cpprof__roots *r, uintptr_t start, uintptr_t end,
            uint64_t *buffer, size_t size)
{
    while (start < end) {
        size_t n = end - start < size ? end - start : size;
        ssize_t got = pread(r->parent_mem, buffer, n, (off_t)start);

        if (got < 0 && errno == EIO) { /* it is gone, or a guard */
            start = (start & ~(PAGE - 1)) + PAGE;
            continue;
        }
        if (got < 8)
            return false;
        r->shared->root_bytes += (uint64_t)got;
        cpprof__marks_from(r->marks, buffer, (size_t)got / 8);
        start += (uintptr_t)got & ~(uintptr_t)7;
    }
    return true;
}

/* One of the parent's; what is gone by now is no root. */
static bool
mark_parents(struct cpprof__roots *r, uintptr_t start, uintptr_t end)
{
    struct cpprof__written pages;
    uint64_t buffer[8192];

    if (r->parent_pagemap < 0)
        return false;
    cpprof__written_begin(&pages, r->parent_pagemap, start, end, false);
    while (cpprof__written_next(&pages, &start, &end))
        if (!mark_remote(r, start, end, buffer, sizeof buffer))
            return false;
    return true;
}

/* What is mapped in the parent and not here. */
static bool
mark_absent(struct cpprof__roots *r, uintptr_t start, uintptr_t end)
{
    while (start < end) {
        size_t i = first_behind(r, start);
        uintptr_t next =
            i < r->n_maps && r->maps[i].start < end ? r->maps[i].start : end;

        if (next > start && !mark_parents(r, start, next))
            return false;
        start = next < end ? r->maps[i].end : end;
    }
    return true;
}

/* Of a file that is memory the child has only those pages that the parent wrote
 * to by this mapping, and not those that were there before. */
bool
cpprof__roots_mark_missing(struct cpprof__roots *r)
{
    struct cpprof_map line = {.size = sizeof line};
    const char *at = r->shared->maps, *end = at + r->shared->n_maps;

    while (cpprof_maps_next(&at, end, &line)) {
        bool done = true;

        if (line.start >= r->shared->not_ours[2].start &&
            line.start < r->shared->not_ours[2].end)
            continue;
        if (is_shared_memory(&line) ||
            (is_private_memory(&line) && is_memory_file(&line)))
            done = mark_parents(r, line.start, line.limit);
        else if (is_private_memory(&line) &&
                 (!is_path(&line, "/") || line.perms[1] == 'w'))
            done = mark_absent(r, line.start, line.limit);
        if (!done)
            return false;
    }
    return true;
}

/* ---- heaps of glibc --------------------------------------------------- */

/* The field top of main_arena, between two addresses of a map; or NULL. */
static const uint64_t *
find_main_arena(const uint64_t *at, const uint64_t *end, uintptr_t limit,
                uintptr_t top, const struct cpprof__leak_range *heap)
{
    for (; at < end; at++)
        if (*at == top && cpprof__glibc_is_arena(at, limit - (uintptr_t)at,
                                                 heap->start, heap->end))
            return at;
    return NULL;
}

/* The lists of free chunks lead to the chunk before each of these. */
static void
leave_out_main_arena(struct cpprof__roots *r, uintptr_t top,
                     const struct cpprof__leak_range *heap)
{
    struct cpprof__written pages;
    const uint64_t *found;
    uintptr_t start, end;
    size_t i;

    for (i = 0; i < r->n_maps; i++) {
        const struct cpprof__leak_map *map = &r->maps[i];

        if (!map->is_file || !map->is_readable || !map->is_writable)
            continue;
        cpprof__written_begin(&pages, r->pagemap, map->start, map->end, true);
        while (cpprof__written_next(&pages, &start, &end)) {
            found = find_main_arena((const uint64_t *)start,
                                    (const uint64_t *)end, map->end, top, heap);
            if (!found)
                continue;
            cpprof__roots_add_hole(r, (uintptr_t)found - CPPROF__ARENA_BEFORE,
                                   (uintptr_t)found + CPPROF__ARENA_BYTES);
            cpprof__glibc_note_arena(r->free_lists, (uintptr_t)found);
            return;
        }
    }
}

/* The program break's mappings, which may be several. */
static void
walk_main_heap(struct cpprof__roots *r)
{
    uintptr_t start = 0, end = 0, first, top;
    size_t i;

    for (i = 0; i < r->n_maps; i++) {
        const struct cpprof__leak_map *map = &r->maps[i];

        if (!map->is_heap)
            continue;
        if (start && map->start != end)
            return;
        if (!start)
            start = map->start;
        end = map->end;
    }
    if (!start || !cpprof__glibc_find(start, start + PAGE, end, &first, &top))
        return;
    leave_out_main_arena(r, top, &(struct cpprof__leak_range){start, end});
    cpprof__glibc_add(r->marks, first, end, r->free_lists);
    cpprof__roots_add_hole(r, first, end);
}

static void
walk_arenas(struct cpprof__roots *r, const struct cpprof__leak_map *map)
{
    uintptr_t at = (map->start + CPPROF__ARENA_ALIGNMENT - 1) &
                   ~(CPPROF__ARENA_ALIGNMENT - 1);

    for (; at < map->end; at += CPPROF__ARENA_ALIGNMENT) {
        uintptr_t from, first, top;
        uintptr_t end =
            cpprof__written_is(r->pagemap, at)
                ? cpprof__glibc_arena(at, map->end, &from, r->free_lists)
                : 0;

        if (!end || !cpprof__glibc_find(from, from + 0x200, end, &first, &top))
            continue;
        cpprof__glibc_add(r->marks, first, end, r->free_lists);
        cpprof__roots_add_hole(r, at, end);
    }
}

static bool
is_in_area(const struct cpprof__roots *r, uintptr_t address)
{
    size_t i;

    /* Walked heaps are few; they came first. */
    for (i = 0; i < r->marks->n_areas && r->marks->areas[i].shift == 4; i++)
        if (address >= r->marks->areas[i].start &&
            address < r->marks->areas[i].end)
            return true;
    return false;
}

/* Chunks with a mapping of their own are known by the blocks that were sampled;
 * others are roots. */
static void
add_mapped(struct cpprof__roots *r)
{
    const struct cpprof__heap *heap = &cpprof__heap;
    uint32_t i, n = cpprof__heap_n_blocks(heap);

    for (i = 1; i < n; i++) {
        uintptr_t address = heap->blocks[i].address, end;
        const struct cpprof__leak_map *map;
        struct cpprof__area *area;

        if (!address || (heap->blocks[i].use & 0xff) || is_in_area(r, address))
            continue;
        map = cpprof__roots_map(r, address);
        if (!map || map->is_file || !map->is_readable)
            continue;
        end = cpprof__glibc_mapped(address, map->start, map->end);
        if (!end)
            continue;
        area = cpprof__marks_add_area(r->marks, address, end, 62);
        if (!area)
            return;
        cpprof__marks_add_block(r->marks, area, address);
        cpprof__roots_add_hole(r, address, end);
    }
}

void
cpprof__roots_walk_heap(struct cpprof__roots *r)
{
    size_t i;

    r->free_lists = cpprof__leak_memory(sizeof *r->free_lists);
    if (!r->free_lists) {
        r->failed = true;
        return;
    }
    walk_main_heap(r);
    for (i = 0; i < r->n_maps; i++)
        if (!r->maps[i].is_file && !r->maps[i].is_heap &&
            !r->maps[i].is_stack && r->maps[i].is_readable)
            walk_arenas(r, &r->maps[i]);
    add_mapped(r);
}

/* ---- stacks ----------------------------------------------------------- */

/*
 * The stack that glibc made for the thread whose control block is at tp, from
 * what stands in that: the mapping, its bytes and those of its guard. Stacks
 * that the program made are not found, and roots as a whole.
 */
static bool
find_stack(const struct cpprof__leak_map *map, uintptr_t tp,
           struct cpprof__leak_range *stack)
{
    const uint64_t *words = (const uint64_t *)tp;
    size_t n =
        (map->end - tp < THREAD_BYTES ? map->end - tp : THREAD_BYTES) / 8;
    size_t i;

    for (i = 0; i + 2 < n; i++) {
        uintptr_t start = words[i], end = start + words[i + 1];
        uint64_t guard = words[i + 2];

        if (start % PAGE || words[i + 1] % PAGE || guard % PAGE || !guard ||
            guard > GUARD_MAX || start + guard != map->start ||
            end > map->end || end <= tp || end - tp > 4 * PAGE)
            continue;
        *stack = (struct cpprof__leak_range){start + guard, end};
        return true;
    }
    return false;
}

/* The lowest of those stack pointers, or thread pointers, that are in a range;
 * 0: none is. */
static uintptr_t
lowest_in(const struct cpprof__roots *r, const struct cpprof__leak_range *range,
          bool by_sp)
{
    uintptr_t lowest = 0;
    uint32_t i;

    for (i = 0; i < r->shared->n_threads; i++) {
        const struct cpprof__leak_thread *t = &r->shared->threads[i];
        uintptr_t at = by_sp ? t->sp : t->tp;

        if (at >= range->start && at < range->end && (!lowest || at < lowest))
            lowest = at;
    }
    return lowest;
}

/* Is a stack nobody's? Threads whose registers are not known have one, too. */
static bool
is_abandoned(const struct cpprof__roots *r, const struct cpprof__leak_range *at)
{
    uint32_t i;

    if (r->shared->knows_threads)
        return !lowest_in(r, at, false);
    for (i = 0; i < r->shared->n_threads; i++)
        if (!r->shared->threads[i].sp)
            return false;
    return true;
}

/* Of one that nobody has, libc keeps the control block for the next thread. */
static void
leave_out_stack(struct cpprof__roots *r, const struct cpprof__leak_range *at,
                uintptr_t tp)
{
    uintptr_t sp = lowest_in(r, at, true);

    if (sp)
        cpprof__roots_add_hole(r, at->start, sp - RED_ZONE);
    else if (is_abandoned(r, at))
        cpprof__roots_add_hole(r, at->start, tp);
}

/* Control blocks stand near the end of their mapping, and point to themselves
 * (psABI, thread-local storage). */
static void
find_stacks(struct cpprof__roots *r, const struct cpprof__leak_map *map)
{
    const uintptr_t from =
        map->end - map->start > 64 * PAGE ? map->end - 64 * PAGE : map->start;
    uintptr_t tp;
    struct cpprof__leak_range stack;

    if (!cpprof__written_is(r->pagemap, map->end - 1))
        return;
    for (tp = (map->end - 0x40) & ~(uintptr_t)63; tp >= from; tp -= 64) {
        const uint64_t *words = (const uint64_t *)tp;

        if (words[0] != tp || words[2] != tp || !find_stack(map, tp, &stack))
            continue;
        leave_out_stack(r, &stack, tp);
        return;
    }
}

void
cpprof__roots_leave_out_stacks(struct cpprof__roots *r)
{
    size_t i;

    for (i = 0; i < r->n_maps; i++) {
        const struct cpprof__leak_map *map = &r->maps[i];
        const struct cpprof__leak_range range = {map->start, map->end};
        uintptr_t sp;

        if (map->is_file || map->is_heap || !map->is_readable)
            continue;
        if (!map->is_stack) {
            find_stacks(r, map);
            continue;
        }
        sp = lowest_in(r, &range, true);
        if (sp)
            cpprof__roots_add_hole(r, map->start, sp - RED_ZONE);
    }
}
