/* SPDX-License-Identifier: MIT */
/*
 * The variable CPPROF, which profiles a program without a line of code:
 *
 *     CPPROF=cpu=HZ,out=PATH      write a profile when the program ends
 *     CPPROF=record=DIR           keep samples in files for a recorder
 *
 * and in both engine=auto|perf|timer|itimer, depth=N,
 * symbolize=full|functions|none, labels=on|off. In PATH %p is the pid, %t the
 * time in seconds since 1970, %e the name of the executable, %% a percent
 * sign.
 */
#ifndef COLLECT_ENVIRONMENT_H
#define COLLECT_ENVIRONMENT_H

#include "collect/session.h"

#include <limits.h>

struct cpprof__environment {
    struct cpprof__session_plan plan; /* without writer and directory */
    char out[PATH_MAX];               /* pattern */
    char directory[PATH_MAX];         /* "": not recording */
};

/* Errors: CPPROF_INVALID with a line that names the word. */
enum cpprof_status
cpprof__environment_parse(const char *text, struct cpprof__environment *env,
                          struct cpprof_error *error);

/* Expand pattern; false when the result does not fit. */
bool
cpprof__environment_path(const char *pattern, char *path, size_t n);

/* Start as CPPROF says. What is wrong is one line on standard error, and the
 * program goes on. */
void
cpprof__environment_start(void);
/* The same in a child made by fork, if this process was started so. */
void
cpprof__environment_start_child(void);
/* Write the profile, if it was started so. hastily: the process ends by
 * _exit(). */
void
cpprof__environment_stop(bool hastily);

#endif
