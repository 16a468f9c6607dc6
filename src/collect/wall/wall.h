/* SPDX-License-Identifier: MIT */
/*
 * Wall time: a thread of ours that ticks (wall_sampler.h) for as long as
 * somebody counts with it: the one profile of cpprof_wall_start(), and any
 * number of captures. Each capture knows the counts at its beginning, and takes
 * the difference when it ends: from then on it has its own counts.
 */
#ifndef COLLECT_WALL_H
#define COLLECT_WALL_H

#include "collect/runtime/life.h"
#include "collect/wall/wall_counts.h"
#include <cpprof/profiles.h>
#include <cpprof/wall.h>

/* As cpprof_wall_start(); with a birth it counts from there, and is written
 * only if it has samples. */
enum cpprof_status
cpprof__wall_start(const struct cpprof_writer *writer,
                   const struct cpprof_wall_options *options,
                   const struct cpprof__birth *birth,
                   struct cpprof_error *error);

/*
 * The same without a writer: what is counted is kept where a recorder reads it
 * (wall_counts.h), until cpprof_wall_stop().
 */
enum cpprof_status
cpprof__wall_record(const struct cpprof_wall_options *options,
                    const struct cpprof__birth *birth,
                    struct cpprof_error *error);

/* The life of wall profiles (life.h), whose captures are these. */
extern struct cpprof__life cpprof__wall_life;

struct cpprof__wall_capture {
    struct cpprof_capture base;
    struct cpprof_wall_options options; /* checked */

    /* Guarded by cpprof__wall_busy while it is counting. */
    struct cpprof__wall_capture *next;
    struct cpprof__wall_base before;
    uint64_t start_ns;

    /* Set when it ends. */
    struct cpprof__wall_counts since;
    struct cpprof__wall_summary summary;
    bool failed; /* no memory */
};

/* Begin a capture. If the ticker runs it has the rate and depth of whoever
 * started that. Checks the options; on failure the writer is closed. */
enum cpprof_status
cpprof__wall_capture_new(const struct cpprof_wall_options *options,
                         const struct cpprof_writer *writer,
                         struct cpprof_capture **out,
                         struct cpprof_error *error);

/* In a child made by fork, which has no wall profile. */
void
cpprof__wall_in_child(void);

#endif
