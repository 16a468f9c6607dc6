/* SPDX-License-Identifier: MIT */
/*
 * The one wall profile of a process: a thread of ours that ticks
 * (wall_watch.h), from cpprof_start_wall_profile() to
 * cpprof_stop_wall_profile().
 */
#ifndef COLLECT_WALL_H
#define COLLECT_WALL_H

/* Around a fork: the child has no wall profile. */
void
cpprof__wall_fork_prepare(void);
void
cpprof__wall_fork_parent(void);
void
cpprof__wall_fork_child(void);

#endif
