/* SPDX-License-Identifier: MIT */
/*
 * Wall time: a thread of ours that ticks (wall_sampler.h) for as long as
 * somebody counts with it: the profile of cpprof_wall_start(), which is
 * one, and captures, which are many. Each knows what was counted when it began,
 * and is cut when it ends: from then on it has its own counts.
 */
#ifndef COLLECT_WALL_H
#define COLLECT_WALL_H

#include "collect/wall/wall_counts.h"
#include <cpprof/profiles.h>

/*
 * The same as cpprof_wall_start() without a writer: what is counted is
 * kept where a recorder reads it (wall_counts.h), until
 * cpprof_wall_stop().
 */
enum cpprof_status
cpprof__wall_record(const struct cpprof_wall_options *options,
                    struct cpprof_error *error);

struct cpprof__wall_capture {
    struct cpprof_wall_options options; /* checked */

    /* wall.c's while it is counting */
    struct cpprof__wall_capture *next;
    bool is_counting;
    struct cpprof__wall_base base;
    uint64_t start_ns;

    /* Once it was cut. */
    struct cpprof__wall_counts since;
    struct cpprof__wall_summary summary;
    bool failed; /* no memory */
};

/* What the caller gave, checked, with the defaults. */
enum cpprof_status
cpprof__wall_options(const struct cpprof_wall_options *given,
                     struct cpprof_wall_options *options,
                     struct cpprof_error *error);

/*
 * Count for a capture from here on, with the rate and depth of who began if
 * the ticker runs. Leave cuts it; it is then the caller's to write, or to free.
 * What fails leaves nothing to be freed. Safety: MT.
 */
enum cpprof_status
cpprof__wall_begin_capture(struct cpprof__wall_capture *c,
                           struct cpprof_error *error);
void
cpprof__wall_end_capture(struct cpprof__wall_capture *c);
/* Frees what it holds, too; the writer is closed. */
enum cpprof_status
cpprof__wall_capture_write(struct cpprof__wall_capture *c,
                           struct cpprof_writer writer,
                           struct cpprof_error *error);
void
cpprof__wall_capture_free(struct cpprof__wall_capture *c);

/* Around a fork: the child has no wall profile. */
void
cpprof__wall_fork_prepare(void);
void
cpprof__wall_fork_parent(void);
void
cpprof__wall_fork_child(void);

#endif
