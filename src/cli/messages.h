/* SPDX-License-Identifier: MIT */
/* The messages of a command when something is wrong, and its exit statuses. */
#ifndef CLI_MESSAGES_H
#define CLI_MESSAGES_H

#include <stdarg.h>
#include <stddef.h>

/* Exit statuses, as the reference and nearly every other tool have them. */
#define CPPROF__EXIT_OK    0
#define CPPROF__EXIT_ERROR 2

/* Print "cpprof: TEXT" on stderr, as one line; returns CPPROF__EXIT_ERROR. */
int
cpprof__cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Print "cpprof: TEXT" on stderr, and go on. */
void
cpprof__cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Print each line of text like that, unless the last call printed the same
 * text: it may be true of many functions or processes in a row. A callback,
 * which needs no context. */
void
cpprof__cli_warn_once(void *unused, const char *text);

/* Room for what they have printed: the latest lines of it. */
#define CPPROF__CLI_SAID 4096

/* Copy them, without what stands in front of each. */
void
cpprof__cli_said(char out[CPPROF__CLI_SAID]);

/* The text of a message: one line, even if a name in it has line breaks, and
 * without the passwords of URLs; cut to size. */
void
cpprof__message_text(char *out, size_t size, const char *format, va_list args);

/* Copy a message, cut to size, with "xxxxx" in place of the passwords of all
 * URLs ("://") in it. */
void
cpprof__hide_passwords(const char *text, char *out, size_t size);

/* The same for a word of the command line. It may be a URL without a scheme, or
 * one that is invalid because of its password. The name of a file stays as it
 * is. */
void
cpprof__hide_password(const char *source, char *out, size_t size);

/* Set the prefix of both, instead of "cpprof: ". */
void
cpprof__cli_prefix(const char *text);

#endif
