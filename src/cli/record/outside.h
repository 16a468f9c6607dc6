/* SPDX-License-Identifier: MIT */
/* The CPU time of a process that may not be attached to, in the files that the
 * library would have written; and whose files it has mapped. */
#ifndef CLI_RECORD_OUTSIDE_H
#define CLI_RECORD_OUTSIDE_H

#include "cli/attach/attach.h"
#include "cli/record/record.h"
#include <cpprof/object.h>

/* Of the file that is mapped, also where its path is another's by now; "" where
 * it has none or cannot be read. */
void
cpprof__mapped_build_id(pid_t pid, const struct cpprof_map *map,
                        char build_id[CPPROF_BUILD_ID_MAX]);

struct cpprof__outside;

/* From now on; inside is the process's pid as it sees it itself. NULL: error is
 * for cpprof__events_error(). */
struct cpprof__outside *
cpprof__outside_begin(const struct cpprof__target *target, pid_t inside,
                      const struct cpprof__record_options *options,
                      const char *folder, unsigned n_processes, int *error);

/* Now and then: what has come. */
void
cpprof__outside_read(struct cpprof__outside *outside);

/* Leave the files in the folder. False: errno says why they are not there. */
bool
cpprof__outside_end(struct cpprof__outside *outside);
void
cpprof__outside_free(struct cpprof__outside *outside);

#endif
