/* SPDX-License-Identifier: MIT */
/*
 * Writes one profile.proto as a stream: strings, functions and locations go
 * out when they are first needed, samples as they are added, so memory grows
 * with the code that was seen and not with the number of samples. The same
 * builder serves every kind of profile.
 *
 * Source: github.com/google/pprof/proto/profile.proto; Go
 * runtime/pprof/proto.go.
 */
#ifndef COLLECT_BUILDER_H
#define COLLECT_BUILDER_H

#include "collect/labels/labels.h"
#include "collect/signal/tables/scripts.h"
#include "collect/store/tables.h"
#include "object/build_id.h"
#include "object/symbolizer.h"
#include <cpprof/writer.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpprof__builder;

struct cpprof__value_type {
    const char *type;
    const char *unit;
};

/* What is known about a profile before its first sample. */
struct cpprof__profile_head {
    const struct cpprof__value_type *sample_types;
    size_t n_sample_types; /* 1 to 8 */
    struct cpprof__value_type period_type;
    int64_t period;
    int64_t time_ns;                 /* CLOCK_REALTIME, not 0 */
    const char *default_sample_type; /* or NULL */
    const char *drop_frames;         /* regular expression, or NULL */
    const char *keep_frames;         /* or NULL */
};

/*
 * head and writer are used until finish; strings of head are copied. The
 * symbolizer may be NULL and stays the caller's; the builder adds its mappings
 * to it. Everything is gzip-compressed on the way out. The writer is the
 * builder's from here on: when make fails it has closed it.
 *
 * Errors: CPPROF_NOMEM, CPPROF_INVALID (head).
 */
enum cpprof_status
cpprof__builder_make(const struct cpprof__profile_head *head,
                     struct cpprof_writer writer,
                     const struct cpprof__symbolizer_ops *ops,
                     struct cpprof__symbolizer *symbolizer,
                     struct cpprof__builder **builder,
                     struct cpprof_error *error);

/*
 * Say which table explains frames of scripts; it is used until finish. Without
 * a table, or if it has no head, these frames are "[unknown]". They are written
 * without an address, in a mapping of their own after all others.
 */
void
cpprof__builder_use_scripts(struct cpprof__builder *b,
                            const struct cpprof__scripts *scripts);

/*
 * The frame that pc, of a script, stands for, and the text of its mapping. If
 * it has no name it gets the name of its file. If it is not in the table, or
 * scripts is NULL, it is "[unknown]", in no mapping (""). The texts live as
 * long as the table's block.
 */
void
cpprof__script_frame(const struct cpprof__scripts *scripts, uint64_t pc,
                     struct cpprof__frame *frame, const char **mapping);

/* The name of one of our own frames, by its pc. */
const char *
cpprof__own_frame_name(uint64_t pc);

/* Mappings are written in the order they are added, all of them, used or not;
 * the main binary first. Adding one that is there already (same start, limit,
 * offset, path and build id) gives its index. CPPROF__NO_MAPPING: no memory. */
uint32_t
cpprof__builder_add_mapping(struct cpprof__builder *b,
                            const struct cpprof__symbolizer_mapping *mapping);

/*
 * Add all mappings that a store has now. Entry i of the result is the builder's
 * number of mapping i; *n is the number of entries. NULL: no memory, which is
 * the builder's failure, too. The caller frees it.
 */
uint32_t *
cpprof__builder_add_store(struct cpprof__builder *b,
                          const struct cpprof__store *store, size_t *n);

/* Samples will have this frame: said of all before the first is added, it saves
 * the symbolizer what they do not need. */
void
cpprof__builder_expect(struct cpprof__builder *b,
                       struct cpprof__builder_frame frame);

/*
 * Add one sample; stack is leaf first and may be empty (it then gets the frame
 * CPPROF__FRAME_BROKEN: a sample is never without one). n values as in head.
 * Failures are sticky and come out of finish.
 */
void
cpprof__builder_add_sample(struct cpprof__builder *b, const int64_t *values,
                           const struct cpprof__builder_frame *stack, size_t n,
                           const struct cpprof__builder_label *labels,
                           size_t n_labels);

/*
 * Add a function or a location that the caller knows, for code that has names
 * but no meaningful addresses. A function is written unless an equal one was; a
 * location is written without an address. Both return the number to refer to it
 * by for as long as the builder lives, or 0 on failure. The Has* bits of the
 * mapping follow.
 */
uint64_t
cpprof__builder_add_function(struct cpprof__builder *b, uint32_t mapping,
                             const struct cpprof__frame *function);
uint64_t
cpprof__builder_add_location(struct cpprof__builder *b, uint32_t mapping,
                             uint64_t function, int64_t line);
uint64_t
cpprof__builder_own_location(struct cpprof__builder *b,
                             enum cpprof__own_frame frame);

/* Add a sample of locations by their numbers, leaf first. */
struct cpprof__builder_ids {
    const uint64_t *at;
    size_t n;
};
void
cpprof__builder_add_located(struct cpprof__builder *b, const int64_t *values,
                            const struct cpprof__builder_ids *ids,
                            const struct cpprof__builder_label *labels,
                            size_t n_labels);

/*
 * The bytes that strings, functions and locations take. And: write the strings
 * and forget them all, so that memory has a bound. What comes again is written
 * again, under another number.
 */
size_t
cpprof__builder_in_tables(const struct cpprof__builder *b);
void
cpprof__builder_forget(struct cpprof__builder *b);

/*
 * The number of frames at the leaf that are to be left out, because hides() is
 * true of all their names. 0 if no frame would be left, or if there are no
 * names.
 */
size_t
cpprof__builder_n_hidden(struct cpprof__builder *b,
                         const struct cpprof__builder_frame *stack, size_t n,
                         bool (*hides)(const char *name));

/* Report that there was no memory for something that belongs into the profile.
 */
void
cpprof__builder_fail_nomem(struct cpprof__builder *b);

/* A line for the profile's comments; copied. */
void
cpprof__builder_add_comment(struct cpprof__builder *b, const char *text);

/*
 * Write what is left, mappings and strings last, close the writer (failed or
 * not) and free the builder. The first failure of all is returned.
 */
enum cpprof_status
cpprof__builder_end(struct cpprof__builder *b, int64_t duration_ns,
                    struct cpprof_error *error);

#endif
