/* SPDX-License-Identifier: MIT */
/* Paths as Go's ServeMux wants them. */
#ifndef HTTP_MUX_H
#define HTTP_MUX_H

#include "base/buffer.h"

/* Append the shortest path that means the same, with a NUL: without empty
 * elements, "." and "..", from the root, with the '/' at its end that it has.
 */
void
cpprof__mux_clean(struct cpprof__buffer *b, const char *path);

#endif
