/* SPDX-License-Identifier: MIT */
/*
 * Asks the kernel for some regions at a time. A kernel that cannot tell them is
 * asked for the entries of some pages, which are put together here.
 */
#include "collect/leak/written.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PAGE CPPROF__PAGE

/* proc_pid_pagemap(5) */
#define PRESENT   (UINT64_C(1) << 63)
#define SWAPPED   (UINT64_C(1) << 62)
#define FROM_FILE (UINT64_C(1) << 61)

/* Pages whose entries are read at once: each second one may begin a region. */
#define WINDOW 512u

/* PAGEMAP_SCAN. Source: linux/fs.h, Documentation/admin-guide/mm/pagemap.rst.
 */
struct scan {
    uint64_t size, flags, start, end, walk_end, regions, max_regions, max_pages;
    uint64_t inverted, all_of, any_of, wanted;
};
#define SCAN _IOWR('f', 16, struct scan)

#define SCAN_FILE    (UINT64_C(1) << 2)
#define SCAN_PRESENT (UINT64_C(1) << 3)
#define SCAN_SWAPPED (UINT64_C(1) << 4)

/* Tunable: pages that the kernel may find before it releases the lock of the
 * process's mappings, for which the program may wait. */
#define AT_ONCE 16384u

void
cpprof__written_begin(struct cpprof__written *p, int pagemap, uintptr_t start,
                      uintptr_t end, bool is_file)
{
    p->pagemap = pagemap;
    p->is_file = is_file;
    p->start = start;
    p->end = end;
    p->at = start & ~(PAGE - 1);
    p->n = p->next = 0;
}

static bool
scan(struct cpprof__written *p)
{
    struct scan s = {
        .size = sizeof s,
        .start = p->at,
        .end = (p->end + PAGE - 1) & ~(PAGE - 1),
        .regions = (uintptr_t)p->found,
        .max_regions = sizeof p->found / sizeof *p->found,
        .max_pages = AT_ONCE,
        .inverted = p->is_file ? SCAN_FILE : 0,
        .all_of = p->is_file ? SCAN_FILE : 0,
        .any_of = SCAN_PRESENT | SCAN_SWAPPED,
        .wanted = SCAN_PRESENT | SCAN_SWAPPED,
    };
    int n = ioctl(p->pagemap, SCAN, &s);

    if (n < 0 || s.walk_end <= p->at)
        return false;
    p->n = (size_t)n;
    p->at = s.walk_end;
    return true;
}

static bool
is_wanted(const struct cpprof__written *p, uint64_t state)
{
    return state & (PRESENT | SWAPPED) &&
           !(p->is_file && state & PRESENT && state & FROM_FILE);
}

/* What cannot be read is looked at. */
static void
look_at_entries(struct cpprof__written *p)
{
    uint64_t window[WINDOW] = {0};
    ssize_t got =
        pread(p->pagemap, window, sizeof window, (off_t)(p->at / PAGE * 8));
    unsigned i;

    for (i = 0; i < WINDOW && p->at < p->end; i++, p->at += PAGE) {
        if (got >= 8 && !is_wanted(p, window[i]))
            continue;
        if (p->n && p->found[p->n - 1].end == p->at)
            p->found[p->n - 1].end = p->at + PAGE;
        else
            p->found[p->n++] =
                (struct cpprof__written_region){p->at, p->at + PAGE, 0};
    }
}

bool
cpprof__written_next(struct cpprof__written *p, uintptr_t *start,
                     uintptr_t *end)
{
    const struct cpprof__written_region *region;

    while (p->next == p->n) {
        if (p->at >= p->end)
            return false;
        p->n = p->next = 0;
        if (!scan(p))
            look_at_entries(p);
    }
    region = &p->found[p->next++];
    *start = region->start > p->start ? region->start : p->start;
    *end = region->end < p->end ? region->end : p->end;
    return true;
}

bool
cpprof__written_is(int pagemap, uintptr_t address)
{
    uint64_t state;

    return pread(pagemap, &state, 8, (off_t)(address / PAGE * 8)) == 8 &&
           state & (PRESENT | SWAPPED);
}
