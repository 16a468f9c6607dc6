/* SPDX-License-Identifier: MIT */
/*
 * Where this process's table of script locations lies
 * (signal/tables/scripts.h): private memory, or, for a recorder, the file
 * DIR/scripts.NUMBER, mapped shared, so that it remains whatever becomes of the
 * process. The number is random, and is written in the heads of the other files
 * of the process (collect/store/spool.h, signal/tables/mirror.h).
 *
 * A forked child goes on with the same file, as it does with the number: the
 * table is added to without locks, by processes as by threads, so what the
 * child has inherited keeps its meaning and nothing is to be done around a
 * fork. An exec'ed image draws another number. A child that cannot reach the
 * file keeps what it has mapped.
 */
#ifndef COLLECT_SCRIPT_FILE_H
#define COLLECT_SCRIPT_FILE_H

#include "collect/signal/tables/scripts.h"

/*
 * Make cpprof__scripts; later calls do nothing. False: there is no memory, and
 * no location of a script will find room.
 * Safety: MT, also in a forked child. Not AS. Uses no allocator.
 */
bool
cpprof__script_file_make(void);

/* From here on a table is made in a file of this directory. Returns the number
 * that it has or will have, never 0. */
uint64_t
cpprof__script_file_record(const char *directory);

/* ---- for the recorder ------------------------------------------------- */

/* Make a private copy of the file of that number. False: there is no file, as
 * for most programs, or no memory; then *scripts has no head. */
bool
cpprof__script_file_read(struct cpprof__scripts *scripts, const char *directory,
                         uint64_t number);
/* No head is fine. */
void
cpprof__script_file_free(struct cpprof__scripts *scripts);

#endif
