/* SPDX-License-Identifier: MIT */
/* Pieces of Graphviz text. Source: internal/graph/dotgraph.go. */
#ifndef REPORT_DOT_H
#define REPORT_DOT_H

#include "base/buffer.h"

/* "#rrggbb" for a part of the whole between -1 (green) and 1 (red), strong or
 * pale. */
#define CPPROF__COLOR_TEXT 8
void
cpprof__dot_color(char text[CPPROF__COLOR_TEXT], double part, bool pale);

/* Append text for inside of quotes; ends of lines become "\l". */
void
cpprof__dot_escape(const void *text, size_t n, struct cpprof__buffer *out);

#endif
