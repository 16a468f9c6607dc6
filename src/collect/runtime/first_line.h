/* SPDX-License-Identifier: MIT */
/* A secret that is kept in a file of one line. */
#ifndef COLLECT_FIRST_LINE_H
#define COLLECT_FIRST_LINE_H

#include <stddef.h>

/*
 * Read the first line of a file into n bytes, without its end. 0 or an errno:
 * EINVAL where the line is empty, has a control character, or begins a file
 * that does not fit into n - 1 bytes.
 */
int
cpprof__first_line(const char *path, char *line, size_t n);

#endif
