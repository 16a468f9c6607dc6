/* SPDX-License-Identifier: MIT */
/* Files that are read whole, and lines in them: those of /proc, and of one
 * line. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/buffer.h"

#include <stddef.h>

/* Append a whole file, and a terminator that is not counted. 0 or an errno, as
 * of cpprof__buffer_read(). */
int
cpprof__file_read(struct cpprof__buffer *out, const char *path, size_t most);

/* What stands behind "KEY:" and blanks, where a line begins with that; NULL:
 * nowhere, or text is NULL. It ends where its line does. */
const char *
cpprof__field(const char *text, const char *key);

/*
 * Read the first line of a file into n bytes, without its end. 0 or an errno:
 * EINVAL where the line is empty, has a control character, or begins a file
 * that does not fit into n - 1 bytes.
 */
int
cpprof__first_line(const char *path, char *line, size_t n);

#endif
