/* SPDX-License-Identifier: MIT */
/*
 * The memory of a process as its child sees it: which of it is heap, and where
 * a pointer keeps a block alive. For the child of leak.h.
 *
 * Roots are all private memory that was written, present or swapped, but for
 * what is known to be none: the heap that was walked, the tables of the
 * profiler, the lists of free chunks, and of stacks what lies below the stack
 * pointer. What is not known to be one of these is a root.
 */
#ifndef COLLECT_LEAK_ROOTS_H
#define COLLECT_LEAK_ROOTS_H

#include "collect/leak/glibc.h"
#include "collect/leak/marks.h"
#include "collect/leak/shared.h"

struct cpprof__leak_map {
    uintptr_t start, end;
    bool is_heap;  /* the program break's */
    bool is_stack; /* the main thread's */
    bool is_file;
    bool is_readable;
    bool is_writable;
};

struct cpprof__roots {
    struct cpprof__leak_shared *shared;
    struct cpprof__marks *marks;
    struct cpprof__leak_map *maps; /* private memory, in order */
    size_t n_maps, max_maps;
    struct cpprof__leak_range *holes; /* no roots */
    size_t n_holes, max_holes;
    struct cpprof__glibc_free_lists *free_lists; /* of a heap that is walked */
    int pagemap;                                 /* of this process */
    int parent_pagemap, parent_mem;
    bool failed;
};

/* Read what is mapped from a descriptor of maps; false: it cannot be. */
bool
cpprof__roots_read(struct cpprof__roots *r, int maps);

/* The map that an address is in, or NULL. */
const struct cpprof__leak_map *
cpprof__roots_map(const struct cpprof__roots *r, uintptr_t address);

void
cpprof__roots_add_hole(struct cpprof__roots *r, uintptr_t start, uintptr_t end);

/* The heap of glibc: areas of marks, with holes in their place. */
void
cpprof__roots_walk_heap(struct cpprof__roots *r);
/* The parts of stacks that are not in use. */
void
cpprof__roots_leave_out_stacks(struct cpprof__roots *r);

/* Mark from n bytes of this process, of which what was not written is passed
 * over. */
void
cpprof__roots_mark(struct cpprof__roots *r, uintptr_t start, uintptr_t end,
                   bool is_file);
/* From all roots. */
void
cpprof__roots_mark_all(struct cpprof__roots *r);
/* From what the parent has and its child does not; false: unreadable. */
bool
cpprof__roots_mark_missing(struct cpprof__roots *r);

#endif
