/* SPDX-License-Identifier: MIT */
/*
 * Where a profile of tables comes from: this process, or the copy that another
 * one left. Heap, block, mutex, wall and thread profiles have a source. And
 * what such a profile needs while it is written, as profile.proto or as text.
 */
#ifndef COLLECT_SOURCE_H
#define COLLECT_SOURCE_H

#include "collect/encode/text_profile.h"
#include "collect/labels/labels.h"
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

/* In place of a stack's number: "[lost samples]". */
#define CPPROF__SOURCE_LOST UINT32_MAX

/* As cpprof__tables_stack(), but a node whose mapping's number is not known is
 * looked up by its address among the mappings that are there now. */
size_t
cpprof__source_stack(const struct cpprof__source *source, uint32_t stack,
                     const uint32_t *numbers, size_t n_numbers,
                     struct cpprof__builder_frame *frames, size_t max);

/*
 * Add the labels of a record to a list. number is that of a label set
 * (signal/tables/label_numbers.h) in the tree of these tables, or 0. A set that
 * can no longer be found becomes one label, {"labels":"[lost]"}. The labels are
 * valid until the next call for this list.
 */
void
cpprof__record_labels(const struct cpprof__tables *tables, uint32_t number,
                      struct cpprof__label_list *labels);

/* ---- a profile that is being written ---------------------------------- */

/* The most frames of one sample; more are cut off. */
#define CPPROF__SOURCE_DEPTH 1026

struct cpprof__source_profile {
    struct cpprof__source source;
    struct cpprof__symbolizer *symbolizer; /* or NULL: no names */
    struct cpprof__builder_frame stack[CPPROF__SOURCE_DEPTH];
    struct cpprof__label_list labels; /* of the sample being written */
    /* As profile.proto: */
    struct cpprof__builder *builder;
    uint32_t *numbers; /* the builder's, of the store's mappings */
    size_t n_numbers;
    /* Or as text: */
    struct cpprof__text_profile text;
};

/* Of a source, or NULL: this process's tables as they are now, without a heap;
 * with the names that are remembered (names.h), if names are wanted. Returns
 * NULL when there is no memory; then the writer was closed. */
struct cpprof__source_profile *
cpprof__source_profile_make(const struct cpprof__source *source,
                            enum cpprof_symbolize symbolize,
                            const struct cpprof_writer *writer,
                            struct cpprof_error *error);
void
cpprof__source_profile_free(struct cpprof__source_profile *p);

/* Begin it as profile.proto: make the builder, with the tables' mappings. The
 * caller ends the builder. The writer is the profile's from here on. */
enum cpprof_status
cpprof__source_begin_proto(struct cpprof__source_profile *p,
                           const struct cpprof__profile_head *head,
                           struct cpprof_writer writer,
                           struct cpprof_error *error);

/* A sample will have this stack: said of all before the first is added, as
 * cpprof__builder_expect() is. */
void
cpprof__source_expect(struct cpprof__source_profile *p, uint32_t stack);

/* Add a sample, with the labels of that number behind those that are in
 * p->labels already. hides may be NULL. */
void
cpprof__source_add_sample(struct cpprof__source_profile *p,
                          const int64_t *values, uint32_t stack,
                          uint32_t labels, bool (*hides)(const char *name));

/* Begin it as text, p->text. The caller ends that. */
void
cpprof__source_begin_text(struct cpprof__source_profile *p,
                          struct cpprof_writer writer);

/* Put a stack of the tables into p->stack, for a text. Returns the number of
 * frames, at least 1. */
size_t
cpprof__source_text_stack(struct cpprof__source_profile *p, uint32_t stack);

/* What follows the values of a record: n frames of p->stack, as addresses and,
 * if wanted, with names; and between them the labels, if there are any. */
void
cpprof__source_put_record(struct cpprof__source_profile *p, size_t n,
                          uint32_t labels, bool names);

#endif
