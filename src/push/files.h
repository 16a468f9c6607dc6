/* SPDX-License-Identifier: MIT */
/*
 * Profiles as files, of which the newest of each kind stay. A file is one of
 * ours if its name is what the pattern makes of a kind, a pid and a time: of
 * any process, so that those of processes that ended go, too.
 */
#ifndef PUSH_FILES_H
#define PUSH_FILES_H

#include "push/message.h"

/* Errors: CPPROF_SYSTEM, CPPROF_NOMEM. Safety: MT. */
enum cpprof_status
cpprof__push_file_write(const struct cpprof__push_plan *plan,
                        const struct cpprof__push_profile *profile,
                        struct cpprof_error *error);

/* Could name be what pattern, without folders, makes of the kind? Then its
 * time, which has 18 digits at most; else -1. */
int64_t
cpprof__push_file_time(const char *pattern, const char *name, const char *kind);

#endif
