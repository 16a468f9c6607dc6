/* SPDX-License-Identifier: MIT */
/*
 * Reads files on all processors while their profiles are added up one after the
 * other: what they become depends on their order. There are never more than two
 * for each processor in memory.
 */
#ifndef CLI_REPORT_AHEAD_H
#define CLI_REPORT_AHEAD_H

#include <cpprof/pprof/profile.h>

#include <stddef.h>

struct cpprof__ahead;

/* Begin with n paths, which stay where they are; NULL: it is not worth it, or
 * there can be no threads. */
struct cpprof__ahead *
cpprof__ahead_begin(char *const *paths, size_t n);

/* The next of them, as pprof_read_path(). */
enum cpprof_status
cpprof__ahead_next(struct cpprof__ahead *ahead, struct pprof_profile **profile,
                   struct cpprof_error *error);

/* All need not have been taken. */
void
cpprof__ahead_end(struct cpprof__ahead *ahead);

#endif
