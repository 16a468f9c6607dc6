/* SPDX-License-Identifier: MIT */
/*
 * Stacks as boxes, in JSON, as src/page/page.h tells: the data of
 * -flamegraph, and of the page of `cpprof http`.
 *
 * The box that is enlarged is told by the names from the root to it: 16
 * hexadecimal digits, of two sums of 32 bits. Each name has two, a and b, begun
 * with 2166136261 and 0x9747b28c. A character c makes a (a ^ c) * 16777619, and
 * b (b ^ c) * 0x5bd1e995, then b ^ b >> 15. Of the path they are made in the
 * same way, with a name's sums in place of c. So the same box has the same
 * digits under other filters and in another profile.
 *
 * Behind them there may be a dash and two more digits for each box on the way,
 * the last byte of its a. They say no more, but a stack that leads elsewhere is
 * left where it does so, and not read to its end.
 */
#ifndef REPORT_BOXES_H
#define REPORT_BOXES_H

#include "report/flame/stacks.h"

/* Append the members that begin any data for a page: {"title", "lines",
 * "total", "units", "divide_by". */
void
cpprof__print_data_head(struct cpprof__report *r, struct cpprof__buffer *out);

/* Write the boxes of a report through its sink. The zoom of a view is looked
 * for: "zoom" is its depth, -1 if it is not there. */
enum cpprof_status
cpprof__print_boxes(struct cpprof__report *r, struct cpprof__stack_cut cut);

#endif
