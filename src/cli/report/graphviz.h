/* SPDX-License-Identifier: MIT */
/* Pictures, drawn by Graphviz. */
#ifndef CLI_GRAPHVIZ_H
#define CLI_GRAPHVIZ_H

#include <cpprof/pprof/report.h>

/*
 * Draw the graph of a profile. `type` is one that dot -T knows; svg gets a
 * script to move and enlarge it. The writer is closed, whatever happens.
 */
enum cpprof_status
cpprof__draw(struct pprof_profile *profile,
             const struct pprof_report_options *options, const char *type,
             struct cpprof_writer writer, struct cpprof_error *error);

/* Write an SVG of Graphviz so that it fills a window and can be moved and
 * enlarged; 0 or an errno. Anything else is written as it is. */
int
cpprof__write_svg(const char *svg, size_t n, const struct cpprof_writer *to);

#endif
