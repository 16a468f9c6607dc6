/* SPDX-License-Identifier: MIT */
/*
 * The tables of this process for a recorder: CPPROF=record=DIR,heap. A copy in
 * DIR/PID.IMAGE.tables is kept up to date by whoever changes a table (see
 * signal/tables/mirror.h); what is here starts that, has mappings found for new
 * stacks now and then, and ends it.
 */
#ifndef COLLECT_RECORDED_H
#define COLLECT_RECORDED_H

#include "collect/signal/tables/mirror.h"
#include <cpprof/status.h>

#include <stdbool.h>

/* Where a part lies in the file; the whole length for CPPROF__MIRROR_END. */
uint64_t
cpprof__recorded_offset(enum cpprof__mirror_part part);

/* owner: the library whose malloc it is, if it is not ours, or NULL. To be
 * called once, or again after a stop, outside handlers, after the tables were
 * made. */
enum cpprof_status
cpprof__recorded_start(const char *directory, const char *owner,
                       struct cpprof_error *error);

/* Called now and then by a thread of ours: resolve new stacks, and see whether
 * somebody asked for an end. False: there is nothing left to do. */
bool
cpprof__recorded_tick(void);

/* The wall profile has ended, maybe after the recorder told to stop: its end is
 * copied, too. */
void
cpprof__recorded_wall_ended(void);

/* The process ends. The copy goes on, because destructors may still free
 * memory. with_timeout: by _exit(), maybe in a handler, where nothing may wait
 * for long. */
void
cpprof__recorded_end(bool with_timeout);

/* The process goes on and its recorder leaves: the copy ends here. */
void
cpprof__recorded_stop(void);

#endif
