/* SPDX-License-Identifier: MIT */
/* Keeps passwords of URLs out of messages, because messages end up in logs. */
#ifndef CLI_PASSWORD_H
#define CLI_PASSWORD_H

#include <stddef.h>

/* Copy a message, cut to size, with "xxxxx" in place of the passwords of all
 * URLs ("://") in it. */
void
cpprof__hide_passwords(const char *text, char *out, size_t size);

/* The same for a word of the command line. It may be a URL without a scheme, or
 * one that is invalid because of its password. The name of a file stays as it
 * is. */
void
cpprof__hide_password(const char *source, char *out, size_t size);

#endif
