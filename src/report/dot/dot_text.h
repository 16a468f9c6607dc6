/* SPDX-License-Identifier: MIT */
/* Pieces of Graphviz text. Source: internal/graph/dotgraph.go. */
#ifndef REPORT_DOT_TEXT_H
#define REPORT_DOT_TEXT_H

#include "report/report.h"

/* "#rrggbb" for a part of the whole between -1 (green) and 1 (red), strong or
 * pale. */
#define CPPROF__COLOR_TEXT 8
void
cpprof__dot_color(char text[CPPROF__COLOR_TEXT], double part, bool pale);

/* Append text for inside of quotes; ends of lines become "\l". */
void
cpprof__dot_escape(const void *text, size_t n, struct cpprof__buffer *out);

/* Print a value, escaped: its unit is of the profile. */
#define CPPROF__DOT_VALUE (2 * CPPROF__LABEL_TEXT)
void
cpprof__dot_value(const struct cpprof__report *r, int64_t value,
                  char text[CPPROF__DOT_VALUE]);

/*
 * Bytes of a name, and of the legend, that are shown where Graphviz is to draw
 * the text: it takes seconds for a name of a megabyte, and may crash. 0, for
 * all of them, where it is printed.
 */
size_t
cpprof__dot_most(const struct cpprof__report *r, bool legend);

/*
 * Append the short form of a function's name: without packages, namespaces and
 * arguments, but with the class. Source: internal/graph/graph.go
 * ShortenFunctionName.
 */
void
cpprof__short_name(const char *name, size_t n, struct cpprof__buffer *out);

#endif
