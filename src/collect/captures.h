/* SPDX-License-Identifier: MIT */
/* The captures of <cpprof/captures.h>, those of CPU and of wall time. */
#ifndef COLLECT_CAPTURES_H
#define COLLECT_CAPTURES_H

/* In a child made by fork there are none: it may end those of the parent. */
void
cpprof__captures_fork_child(void);

#endif
