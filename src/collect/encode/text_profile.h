/* SPDX-License-Identifier: MIT */
/*
 * A profile as text, as Go's runtime/pprof writes it with debug=1: lines, and
 * under the line of a stack one for each of its frames, aligned as
 * text/tabwriter does (minimal width 1, tabs of 8, padding 1).
 *
 * Source: Go runtime/pprof/pprof.go (printStackRecord), text/tabwriter.
 */
#ifndef COLLECT_TEXT_PROFILE_H
#define COLLECT_TEXT_PROFILE_H

#include "base/buffer.h"
#include "collect/encode/builder.h"
#include "collect/store/tables.h"

#include <stdbool.h>

/* One frame's line: tab-terminated cells, then the rest of it. */
struct cpprof__text_line {
    uint32_t cells[3]; /* offsets of text in .cells */
    uint32_t n_cells;  /* the last is not followed by a tab */
};

struct cpprof__text_profile {
    struct cpprof_writer writer;
    const struct cpprof__symbolizer_ops *ops;
    struct cpprof__symbolizer *symbolizer; /* or NULL: no names */
    bool (*hides)(const char *name); /* of functions left out at the leaf */
    struct cpprof_error error;       /* the first failure; sticky */

    /* The symbolizer's number of each mapping of a store, or
     * CPPROF__NO_MAPPING. */
    uint32_t *mappings;
    size_t n_mappings;

    const struct cpprof__scripts *scripts; /* or NULL */

    struct cpprof__buffer out;
    struct cpprof__buffer cells; /* of the stack being written */
    struct cpprof__buffer lines;
    struct cpprof__frame frames[256]; /* of one address; names.c does not keep
                                       * what has more */
    char script_texts[3][1024];       /* of a frame: mapping, name, file */
};

/* The writer belongs to the profile from here on. symbolizer and hides may be
 * NULL. */
void
cpprof__text_begin(struct cpprof__text_profile *t, struct cpprof_writer writer,
                   const struct cpprof__symbolizer_ops *ops,
                   struct cpprof__symbolizer *symbolizer);

/* Make t->mappings, and note which table explains frames of scripts. */
void
cpprof__text_add_mappings(struct cpprof__text_profile *t,
                          const struct cpprof__tables *tables);

/* Put what is known about a frame into t->frames. Returns how many there are:
 * of an address one for each inlined call, too, and 0 if nothing is known. */
size_t
cpprof__text_resolve(struct cpprof__text_profile *t,
                     const struct cpprof__builder_frame *frame);

void
cpprof__text_printf(struct cpprof__text_profile *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What follows the "@" of a record: return addresses. The mapping of a frame is
 * one of t->mappings. Frames of scripts have no address; a record of nothing
 * else gets that of CPPROF__FRAME_BROKEN. */
void
cpprof__text_addresses(struct cpprof__text_profile *t,
                       const struct cpprof__builder_frame *stack, size_t n);

/* A comment for each frame, inlined ones too, and an empty line. Hidden frames
 * are left out at the leaf, unless there are no others. */
void
cpprof__text_stack(struct cpprof__text_profile *t,
                   const struct cpprof__builder_frame *stack, size_t n);

/* Write what is left, close the writer and free. Returns the first failure of
 * all. */
enum cpprof_status
cpprof__text_end(struct cpprof__text_profile *t, struct cpprof_error *error);

#endif
