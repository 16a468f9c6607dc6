/* SPDX-License-Identifier: MIT */
/* File names as text. Source: Go path/filepath, internal/report/source.go. */
#ifndef PROFILE_PATH_H
#define PROFILE_PATH_H

#include "base/buffer.h"

#include <stddef.h>

/* The last element: a slice of path, "." for "", "/" for slashes only. */
const char *
cpprof__path_base(const char *path, size_t n, size_t *n_base);

/* Append the shortest name that means the same: no ".", "a/..", "//". */
void
cpprof__path_clean(const char *path, size_t n, struct cpprof__buffer *out);

/* How many bytes at the front of path -trim_path and -source_path (lists
 * parted by colons, maybe NULL) cut away. */
size_t
cpprof__path_trim(const char *path, size_t n, const char *trim_path,
                  const char *source_path);

#endif
