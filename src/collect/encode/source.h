/* SPDX-License-Identifier: MIT */
/*
 * Where a profile of tables comes from: this process, or the copy that another
 * one left. Heap, block, mutex, wall and thread profiles have a source.
 */
#ifndef COLLECT_SOURCE_H
#define COLLECT_SOURCE_H

#include "collect/store/tables.h"
#include "object/symbolizer.h"
#include <cpprof/profiles.h>

#include <stdbool.h>

struct cpprof__heap;

/* What a profile is made of. None of it is changed or trusted. */
struct cpprof__source {
    const struct cpprof__heap *heap;          /* head, blocks, buckets */
    const struct cpprof__tables *tables;      /* nodes of the tree, store */
    const struct cpprof__symbolizer_ops *ops; /* NULL: no names */
    int32_t pid;                              /* for JIT maps and the vdso */
    bool is_self;          /* tables and statistics are this process's */
    uint16_t number;       /* of the heap: 0 is malloc's */
    const char *name;      /* of a heap that is not malloc's, or NULL */
    const char *allocator; /* the library whose malloc is below ours, or NULL */
    int64_t time_ns;       /* CLOCK_REALTIME, not 0 */
    int64_t duration_ns;   /* 0: not said */
};

/* NULL: no names are wanted, or there is no symbolizer. */
struct cpprof__symbolizer *
cpprof__source_symbolizer(const struct cpprof__source *source,
                          enum cpprof_symbolize symbolize);

/* As cpprof__tables_stack(), but a node whose mapping's number is not known is
 * looked up by its address among the mappings that are there now. */
size_t
cpprof__source_stack(const struct cpprof__source *source, uint32_t stack,
                     const uint32_t *numbers, size_t n_numbers,
                     struct cpprof__builder_frame *frames, size_t max);

#endif
