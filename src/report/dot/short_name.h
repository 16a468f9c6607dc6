/* SPDX-License-Identifier: MIT */
/*
 * Function names for drawings: without packages, namespaces and arguments,
 * but with the class. Source: internal/graph/graph.go ShortenFunctionName.
 */
#ifndef REPORT_SHORT_NAME_H
#define REPORT_SHORT_NAME_H

#include "base/buffer.h"

/* Append the short form of a name. */
void
cpprof__short_name(const char *name, size_t n, struct cpprof__buffer *out);

#endif
