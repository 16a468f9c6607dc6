/* SPDX-License-Identifier: MIT */
/*
 * The one wall profile of a process: a thread of ours that ticks
 * (wall_watch.h), from cpprof_start_wall_profile() to
 * cpprof_stop_wall_profile().
 */
#ifndef COLLECT_WALL_H
#define COLLECT_WALL_H

#include <cpprof/profiles.h>

/*
 * The same as cpprof_start_wall_profile() without a writer: what is counted is
 * kept where a recorder reads it (wall_counts.h), until
 * cpprof_stop_wall_profile().
 */
enum cpprof_status
cpprof__wall_record(const struct cpprof_wall_options *options,
                    struct cpprof_error *error);

/* Around a fork: the child has no wall profile. */
void
cpprof__wall_fork_prepare(void);
void
cpprof__wall_fork_parent(void);
void
cpprof__wall_fork_child(void);

#endif
