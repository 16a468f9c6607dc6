/* SPDX-License-Identifier: MIT */
/*
 * How much address space the heap profile takes: as much as the rate makes
 * likely, and more when the rate falls, unless the place for it was taken.
 */
#include "heap_heading.h"
#include "tap.h"

#include <cpprof/heap.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEFAULT_RATE (512 * 1024)
#define MAPS_MAX     1000
#define TAKEN_MAX    100
#define PAGE         ((size_t)sysconf(_SC_PAGESIZE))

/* More than there is room for at the default rate, and fewer than at 1. */
#define BLOCKS 700000
#define ROOM   (1 << 19)

static void *blocks[BLOCKS];

struct range {
    uintptr_t start, end;
};

static struct range before[MAPS_MAX], after[MAPS_MAX];
static char *taken[TAKEN_MAX];
static size_t n_taken;

/* Mappings of this process, by address. */
static size_t
read_maps(struct range *maps)
{
    FILE *file = fopen("/proc/self/maps", "re");
    char line[4096];
    size_t n = 0;

    if (!file)
        bail("no maps");
    while (n < MAPS_MAX && fgets(line, sizeof line, file))
        if (sscanf(line, "%lx-%lx", &maps[n].start, &maps[n].end) == 2)
            n++;
    fclose(file);
    return n;
}

static double
megabytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long pages = 0;

    if (!file || fscanf(file, "%ld", &pages) != 1)
        bail("no size");
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1048576;
}

static void
allocate(void)
{
    size_t i;

    for (i = 0; i < BLOCKS; i++)
        blocks[i] = malloc(16);
}

static void
release(void)
{
    size_t i;

    for (i = 0; i < BLOCKS; i++)
        free(blocks[i]);
}

static bool
is_new(const struct range *map, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (map->start < before[i].end && before[i].start < map->end)
            return false;
    return true;
}

/* Take a page right behind each mapping that the heap profile has made. */
static void
take_places(size_t n_before)
{
    size_t n = read_maps(after), i;

    for (i = 0; i < n && n_taken < TAKEN_MAX; i++) {
        char *place = (char *)after[i].end, *p;

        if (!is_new(&after[i], n_before))
            continue;
        p = mmap(place, PAGE, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == place)
            taken[n_taken++] = memset(p, 'x', PAGE);
    }
}

static bool
are_as_they_were(void)
{
    size_t i, k;

    for (i = 0; i < n_taken; i++)
        for (k = 0; k < PAGE; k++)
            if (taken[i][k] != 'x')
                return false;
    return true;
}

static void
fall_with_room(void)
{
    double alone = megabytes(), at_default;

    cpprof_heap_set_rate(DEFAULT_RATE);
    at_default = megabytes() - alone;
    check_at_least(at_default, 1, "the default rate takes address space, MB");
    check_at_most(at_default, 128, "but not for what is not likely");
    cpprof_heap_set_rate(1);
    check_at_least(megabytes() - alone, at_default + 100, "the rate 1 does");
    allocate();
    check_at_least(heap_heading().inuse_objects, BLOCKS, "all are in use");
    release();
    check_at_most(heap_heading().inuse_objects, 1000, "all are freed");
}

static void
fall_without_room(void)
{
    size_t n_before = read_maps(before);
    struct heap_heading h;

    cpprof_heap_set_rate(DEFAULT_RATE);
    take_places(n_before);
    check_at_least(n_taken, 1, "the program maps where more would come");
    cpprof_heap_set_rate(1);
    allocate();
    h = heap_heading();
    check_at_least(h.alloc_objects, BLOCKS, "all allocations count");
    check_at_least(h.inuse_objects, ROOM / 2, "in use are those with room");
    check_at_most(h.inuse_objects, ROOM, "and no others");
    release();
    check_at_most(heap_heading().inuse_objects, 1000, "all are freed");
    check(are_as_they_were(), "the program's memory is as it was");
}

int
main(int argc, char **argv)
{
    (void)argv;
    cpprof_heap_set_rate(0);
    if (argc == 1)
        fall_with_room();
    else
        fall_without_room();
    return check_done();
}
