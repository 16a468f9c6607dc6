/* SPDX-License-Identifier: MIT */
/* The page of a flame graph, around its data: JSON in a <script> that is not
 * run, as page/page.h tells. */
#ifndef REPORT_FLAMEGRAPH_H
#define REPORT_FLAMEGRAPH_H

extern const char *const cpprof__flamegraph_begin[];
extern const char *const cpprof__flamegraph_end[];

#endif
