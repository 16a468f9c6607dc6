/* SPDX-License-Identifier: MIT */
/* The messages of a command when something is wrong, and its exit statuses. */
#ifndef CLI_MESSAGES_H
#define CLI_MESSAGES_H

/* Exit statuses, as the reference and nearly every other tool have them. */
#define CPPROF__EXIT_OK    0
#define CPPROF__EXIT_ERROR 2

/* Print "cpprof: TEXT" on stderr, as one line; returns CPPROF__EXIT_ERROR. */
int
cpprof__cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Print "cpprof: TEXT" on stderr, and go on. */
void
cpprof__cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Set the prefix of both, instead of "cpprof: ". */
void
cpprof__cli_prefix(const char *text);

#endif
