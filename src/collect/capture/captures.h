/* SPDX-License-Identifier: MIT */
/* The captures of <cpprof/captures.h>, those of CPU and of wall time. */
#ifndef COLLECT_CAPTURES_H
#define COLLECT_CAPTURES_H

struct cpprof_capture;

/* End a capture that nobody waits for any more: nothing is written, its writer
 * is closed as failed. Safety: MT. */
void
cpprof__capture_cancel(struct cpprof_capture *capture);

/* A child made by fork has no captures of its own, but it may end those of the
 * parent. */
void
cpprof__captures_in_child(void);

#endif
