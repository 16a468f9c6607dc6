/* SPDX-License-Identifier: MIT */
/* The page of a flame graph, around its data. */
#ifndef REPORT_FLAMEGRAPH_H
#define REPORT_FLAMEGRAPH_H

/*
 * What comes before and behind the data, which is JSON in a <script> that is
 * not run: {"title", "lines", "total", "diff", "cut", "units": [[name,
 * factor]...], "names": [...], "boxes": [...]}. A box is five numbers: its
 * name, flags (1: inlined), how many children it has, its positive and its
 * negative value; boxes come in the order of a walk from the root, children
 * behind their parent, the largest first.
 */
extern const char *const cpprof__flamegraph_begin[];
extern const char *const cpprof__flamegraph_end[];

#endif
