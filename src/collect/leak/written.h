/* SPDX-License-Identifier: MIT */
/*
 * Which pages of a range hold something that was written. Of memory that is
 * reserved, and mostly never touched, only what is there costs time
 * (PAGEMAP_SCAN, Linux 6.7; before that a look at the entry of each page). For
 * the child of leak.h.
 */
#ifndef COLLECT_LEAK_WRITTEN_H
#define COLLECT_LEAK_WRITTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPPROF__PAGE UINT64_C(4096)

struct cpprof__written_region {
    uint64_t start, end, categories;
};

struct cpprof__written {
    int pagemap;  /* of the process: /proc/PID/pagemap */
    bool is_file; /* pages that are a file's, unchanged, do not count */
    uintptr_t start, end;
    /* Private. */
    uintptr_t at;
    size_t n, next;
    struct cpprof__written_region found[256];
};

/* A range; its ends need not be those of pages. */
void
cpprof__written_begin(struct cpprof__written *p, int pagemap, uintptr_t start,
                      uintptr_t end, bool is_file);
/* The next part of it that was written; false: there is none. */
bool
cpprof__written_next(struct cpprof__written *p, uintptr_t *start,
                     uintptr_t *end);

/* Was the page of an address written? */
bool
cpprof__written_is(int pagemap, uintptr_t address);

#endif
