/* SPDX-License-Identifier: MIT */
/* Passwords of URLs have no place in messages: logs keep them. */
#ifndef CLI_PASSWORD_H
#define CLI_PASSWORD_H

#include <stddef.h>

/* Copy a message, cut to size, with "xxxxx" for the passwords of all URLs
 * ("://") in it. */
void
cpprof__hide_passwords(const char *text, char *out, size_t size);

/* The same of a word of the command line, which may be a URL without a scheme,
 * or be none because of what is in its password; a file keeps its name. */
void
cpprof__hide_password(const char *source, char *out, size_t size);

#endif
