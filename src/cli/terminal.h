/* SPDX-License-Identifier: MIT */
/*
 * What a terminal gets and a pipe or a file does not: colours, lines no wider
 * than the terminal, and progress.
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <cpprof/pprof/report.h>

#include <stdbool.h>

/* The escape sequence for a colour ("31" is red), or to end it (""). Empty if
 * fd is no terminal, TERM is dumb or NO_COLOR is set. */
const char *
cpprof__color(int fd, const char *code);

/* Does TERM say that escape sequences mean nothing to it? */
bool
cpprof__terminal_is_dumb(void);

/* Columns of the terminal at fd; 0: it is no terminal, or does not say. */
unsigned
cpprof__terminal_columns(int fd);

/*
 * Standard output for a report. On a terminal, lines of -top are cut to its
 * width, titles of tables are bold and control characters are shown; else
 * bytes pass as they are.
 */
struct cpprof_writer
cpprof__terminal_writer(enum pprof_report_format format);

/*
 * A writer in front of `to`, which ends at fd. If fd is a terminal, control
 * characters are shown as "\x1b", except ends of lines and tabs, so that names
 * of a profile cannot control it; else bytes pass as they are. There is one at
 * a time: the next one takes the place of the last.
 */
struct cpprof_writer
cpprof__clean_writer(struct cpprof_writer to, int fd);

/*
 * If stderr is a terminal, print what is being done once it has taken a second:
 * `what` and the seconds so far. Calls do not nest: the latest one counts. The
 * first byte of a report ends it too.
 *
 * Safety: one thread at a time.
 */
void
cpprof__progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void
cpprof__progress_end(void);

/* What is being done, whether or not it is printed, and for how many seconds;
 * "" for nothing. Safety: MT. */
long
cpprof__progress_now(char *what, size_t n);

/* Remove the line, because something else is to be printed. */
void
cpprof__progress_hide(void);

#endif
