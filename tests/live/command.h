/* SPDX-License-Identifier: MIT */
/*
 * Run another program and keep what it said.
 */
#ifndef LIVE_COMMAND_H
#define LIVE_COMMAND_H

#include <stddef.h>
#include <sys/types.h>

struct result {
    int status; /* as waitpid() gives it */
    pid_t pid;
    char out[16384]; /* standard output, terminated, cut when longer */
    char err[16384];
};

/*
 * Run argv[0] (a path, or a name to look up) with these additions to the
 * environment, each "NAME=value", NULL at the end; NULL for none. A program
 * that takes more than seconds is killed, which bails out: a test that hangs
 * has failed.
 */
void
run_command(const char *const argv[], const char *const environment[],
            unsigned seconds, struct result *result);

/* Paths of what was built: the shared library that this program is linked
 * with, the command beside it, and a file beside this program. */
const char *
library_path(void);
const char *
cpprof_path(void);
const char *
beside_path(const char *name);

/* How many lines a text has. */
size_t
count_lines(const char *text);

#endif
