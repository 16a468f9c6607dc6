/* SPDX-License-Identifier: MIT */
/*
 * The shell that starts when no format is given: reads commands, changes
 * options, prints reports of one profile that was read once.
 */
#ifndef CLI_SHELL_H
#define CLI_SHELL_H

#include "cli/report/report.h"
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

/* -------------------------------------------------------- completion ---- */

/* At most this many possibilities are listed. */
#define CPPROF__MAX_LISTED 60

struct cpprof__completion {
    size_t n_replaced; /* bytes before the cursor that are replaced */
    char *text;        /* the text in their place; NULL: nothing to add */
    size_t n_matches;
    /* The first of them, when there are several; some are shared, so only the
     * array is freed. */
    const char *listed[CPPROF__MAX_LISTED];
    size_t n_listed;
};

/*
 * Complete line[0..cursor). The first word is a command, an option or a sample
 * type; a later word is the name of a function, as an expression that matches
 * it; after "help" and "=" it is what makes sense there.
 *
 * Returns false when memory is out. Free with cpprof__completion_free().
 */
bool
cpprof__complete(const struct pprof_profile *profile, const char *line,
                 size_t cursor, struct cpprof__completion *completion);
void
cpprof__completion_free(struct cpprof__completion *completion);

/* ----------------------------------------------------------- history ---- */

/* The history keeps this many lines. A file with twice as many is cut. */
#define CPPROF__HISTORY_LINES 1000

/* Call add for each line, the oldest first. Without a file there are none. */
void
cpprof__history_load(void (*add)(void *ctx, const char *line), void *ctx);

/* Keep a line. If it cannot be written nothing is reported. */
void
cpprof__history_add(const char *line);

#endif
