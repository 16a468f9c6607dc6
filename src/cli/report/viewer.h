/* SPDX-License-Identifier: MIT */
/* Programs that show a report. */
#ifndef CLI_VIEWER_H
#define CLI_VIEWER_H

#include <cpprof/status.h>

/*
 * Make a file for a report that `viewer` is to show, "web", "gv", "evince",
 * "eog" or "kcachegrind", in $TMPDIR; path has room for PATH_MAX bytes.
 */
enum cpprof_status
cpprof__viewer_file(const char *ending, char *path, struct cpprof_error *error);

enum cpprof__view_wait {
    CPPROF__VIEW_A_MOMENT, /* while it opens the file */
    CPPROF__VIEW_TO_THE_END,
};

/* Show the file with the first program that is there. */
enum cpprof_status
cpprof__view(const char *viewer, const char *path, enum cpprof__view_wait wait,
             struct cpprof_error *error);

/*
 * Between these, files are remembered, also those that forked children make;
 * the end removes them.
 */
void
cpprof__viewer_begin(void);
void
cpprof__viewer_end(void);

#endif
