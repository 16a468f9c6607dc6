/* SPDX-License-Identifier: MIT */
/*
 * A heap profile as a file: from a heap's tables, this process's or what
 * another one left of its own, to the builder or to text.
 */
#ifndef COLLECT_HEAP_PROFILE_H
#define COLLECT_HEAP_PROFILE_H

#include "collect/heap_rows.h"
#include "collect/tables.h"

/* What a profile is made of. Nothing of it is changed or trusted. */
struct cpprof__heap_source {
    const struct cpprof__heap *heap;          /* head, blocks, buckets */
    const struct cpprof__tables *tables;      /* nodes of the tree, store */
    const struct cpprof__symbolizer_ops *ops; /* NULL: no names */
    int32_t pid;                              /* for JIT maps and the vdso */
    bool is_self;          /* tables and statistics are this process's */
    uint16_t number;       /* of the heap: 0 is malloc's */
    const char *name;      /* of a heap that is not malloc's, or NULL */
    const char *allocator; /* whose malloc is underneath, or NULL */
    int64_t time_ns;       /* CLOCK_REALTIME, not 0 */
    int64_t duration_ns;   /* 0: not said */
};

/*
 * This process's heap as it is to be written now: of options heap, symbolize
 * and CPPROF_HEAP_LABELS are looked at, the last from now on.
 *
 * Errors: CPPROF_UNSUPPORTED.
 */
enum cpprof_status
cpprof__heap_own_source(const struct cpprof_heap_options *options,
                        struct cpprof__heap_source *source,
                        struct cpprof_error *error);

/* options: size is not looked at. The writer is closed by this call. */
enum cpprof_status
cpprof__heap_profile_write(const struct cpprof__heap_source *source,
                           const struct cpprof_heap_options *options,
                           struct cpprof_writer writer,
                           struct cpprof_error *error);

/* Its two halves, of rows that were taken. */
enum cpprof_status
cpprof__heap_write_proto(const struct cpprof__heap_source *source,
                         const struct cpprof_heap_options *options,
                         const struct cpprof__heap_rows *rows,
                         struct cpprof_writer writer,
                         struct cpprof_error *error);
enum cpprof_status
cpprof__heap_write_text(const struct cpprof__heap_source *source,
                        const struct cpprof_heap_options *options,
                        const struct cpprof__heap_rows *rows,
                        struct cpprof_writer writer,
                        struct cpprof_error *error);

/* NULL: no names are wanted, or there is no symbolizer. */
struct cpprof__symbolizer *
cpprof__heap_symbolizer(const struct cpprof__heap_source *source,
                        enum cpprof_symbolize symbolize);

/* cpprof__tables_stack(), where what lies in no known mapping by its number is
 * looked for by its address among the mappings that are there. */
size_t
cpprof__heap_stack(const struct cpprof__heap_source *source, uint32_t stack,
                   const uint32_t *numbers, size_t n_numbers,
                   struct cpprof__builder_frame *frames, size_t max);

#endif
