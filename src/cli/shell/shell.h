/* SPDX-License-Identifier: MIT */
/*
 * The shell that starts when no format is given: reads commands, changes
 * options, prints reports of one profile that was read once.
 */
#ifndef CLI_SHELL_H
#define CLI_SHELL_H

#include "cli/report/report_flags.h"
#include "cli/report/settings.h"

#include <stdbool.h>
#include <stddef.h>

/* Print a message of the shell on stderr: red on a terminal. */
void
cpprof__shell_error(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* ---------------------------------------------------------- commands ---- */

/* A line that asks for a report. */
struct cpprof__shell_command {
    struct cpprof__report_flags report; /* the options for it alone */
    const char *program;                /* what it is piped to, or NULL */
    /* Memory of the above. */
    char *line;
    char *focus, *ignore;
};

/*
 * Understand "top 10 main -idle -cum > file". Returns false after printing what
 * is wrong.
 */
bool
cpprof__shell_parse(const char *line, const struct cpprof__settings *settings,
                    struct cpprof__shell_command *command);
void
cpprof__shell_command_free(struct cpprof__shell_command *command);

/*
 * Print the report of a command in its own process. That process has its own
 * copy of the profile, and an interrupt ends it and not the shell.
 */
void
cpprof__shell_run(struct pprof_profile *profile,
                  const struct cpprof__shell_command *command);

/* --------------------------------------------------------- the input ---- */

/*
 * Where lines come from: the line editor on a terminal, with history and
 * completion; else plain standard input. `profile` tells what can be completed.
 */
struct cpprof__shell_input;

/* NULL: no memory. */
struct cpprof__shell_input *
cpprof__shell_input_open(const struct pprof_profile *profile);
void
cpprof__shell_input_close(struct cpprof__shell_input *input);

/* Is somebody typing? */
bool
cpprof__shell_input_is_terminal(const struct cpprof__shell_input *input);

/* The next line, without its end; NULL at the end of the input. Valid until
 * the next call. */
const char *
cpprof__shell_input_line(struct cpprof__shell_input *input);

#endif
