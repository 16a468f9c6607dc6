/* SPDX-License-Identifier: MIT */
/*
 * What all pages have in common, as it stands in the files of this folder:
 * base.css, text.js and flame.js, which draws stacks as boxes. The page of
 * `cpprof http` (src/page/web) has its own parts besides. The file of `cpprof
 * -flamegraph` and the page that a program serves show one chart, by single.js
 * in the elements of flamegraph.html.
 *
 * flameGraph.show(data) draws what is in {"title", "lines", "total", "diff",
 * "cut", "divide_by", "units": [[name, factor]...], "names": [...], "boxes":
 * [...]}. A box is seven numbers: its name, flags (1: inlined), how many
 * children it has, its positive and its negative value, and those of the stacks
 * that end in it. Boxes come in the order of a walk from the root, children
 * behind their parent, the largest first.
 */
#ifndef PAGE_PAGE_H
#define PAGE_PAGE_H

#include <stddef.h>

/* A file as it is sent, compressed by gzip: every browser takes that. The last
 * one of a table has no name. */
struct cpprof__page_file {
    const char *name, *type;
    const unsigned char *data;
    size_t n;
};

extern const char cpprof__base_css[], cpprof__single_css[];
extern const char cpprof__flamegraph_html[];
extern const char cpprof__text_js[], cpprof__flame_js[], cpprof__single_js[];

/* "'sha256-...'" of those that stand inside of a page, for its policy. */
extern const char cpprof__base_css_hash[], cpprof__single_css_hash[];
extern const char cpprof__text_js_hash[], cpprof__flame_js_hash[],
    cpprof__single_js_hash[];

#endif
