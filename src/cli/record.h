/* SPDX-License-Identifier: MIT */
/* The parts of `cpprof record`: options, the child and its folder, files. */
#ifndef CLI_RECORD_H
#define CLI_RECORD_H

#include <cpprof/recording.h>

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cpprof__record_options {
    unsigned rate_hz;   /* 0: the library's default */
    unsigned max_depth; /* 0: the library's default */
    const char *engine; /* as in CPPROF= */
    enum cpprof_symbolize symbolize;
    const char *out;
    double duration_s; /* 0: until the command ends */
    char **command;    /* NULL-terminated */
};

/* ------------------------------------------------- record_folder.c ------- */

/* Where the samples are while the command runs, and what it preloads. */
struct cpprof__record_folder {
    char path[PATH_MAX];
    char library[PATH_MAX];
};

/* False after printing why. */
bool
cpprof__record_folder_make(struct cpprof__record_folder *folder);
/* Safety: AS. */
void
cpprof__record_folder_remove(const struct cpprof__record_folder *folder);

/* -------------------------------------------------- record_child.c ------- */

struct cpprof__record_child {
    pid_t pid;
    int status;       /* of waitpid, once it ended */
    int64_t start_ns; /* CLOCK_MONOTONIC */
};

/*
 * Start the command under the library. From here on SIGINT and SIGQUIT are the
 * command's alone, and SIGTERM and SIGHUP are passed on to it.
 *
 * Returns 0, or the exit status after printing why it could not be run.
 */
int
cpprof__record_child_start(const struct cpprof__record_options *options,
                           const struct cpprof__record_folder *folder,
                           struct cpprof__record_child *child);

/* Wait until the command ended, or until seconds after its start (0: for
 * ever). True: it ended. */
bool
cpprof__record_child_wait(struct cpprof__record_child *child, double seconds);

/*
 * The command has ended: from here on signals are ours again. One that comes
 * while the profile is written removes the folder and ends this program.
 */
void
cpprof__record_child_ended(const struct cpprof__record_folder *folder);

/* End as the command did: its exit status is returned, a signal is raised. */
int
cpprof__record_child_pass_on(const struct cpprof__record_child *child);

/* -------------------------------------------------- record_files.c ------- */

/*
 * Write what was recorded of the command and of every process it started, and
 * say so. False after printing what went wrong.
 */
bool
cpprof__record_files_write(const struct cpprof__record_options *options,
                           const struct cpprof__record_folder *folder,
                           pid_t command);

#endif
