/* SPDX-License-Identifier: MIT */
/* The thread that looks for deadlocks: CPPROF=deadlock=, <cpprof/deadlock.h>.
 */
#ifndef COLLECT_WATCH_H
#define COLLECT_WATCH_H

#include <cpprof/deadlock.h>

#include <stdbool.h>

/* As cpprof_deadlock_start(). aborts: a cycle ends the process by SIGABRT once
 * it has been told. */
enum cpprof_status
cpprof__watch_start(const struct cpprof_deadlock_options *options, bool aborts,
                    struct cpprof_error *error);

/* In a child made by fork: there is none. */
void
cpprof__watch_in_child(void);

#endif
