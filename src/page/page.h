/* SPDX-License-Identifier: MIT */
/*
 * The flame graph of pages: its style, its elements and its script, as they
 * stand in the files of this folder. The page of `cpprof -flamegraph` and the
 * one that a program serves show it.
 *
 * The script makes one object, flameGraph. flameGraph.show(data) draws what is
 * in {"title", "lines", "total", "diff", "cut", "divide_by", "units": [[name,
 * factor]...], "names": [...], "boxes": [...]}. A box is five numbers: its
 * name, flags (1: inlined), how many children it has, its positive and its
 * negative value; boxes come in the order of a walk from the root, children
 * behind their parent, the largest first.
 */
#ifndef PAGE_PAGE_H
#define PAGE_PAGE_H

extern const char cpprof__flamegraph_css[];
extern const char cpprof__flamegraph_html[];
extern const char cpprof__flamegraph_js[];

#endif
