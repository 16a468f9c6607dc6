/* SPDX-License-Identifier: MIT */
/*
 * The dump of all threads as text, in the shape of Go's (goroutine, debug=2),
 * which tools that read those accept:
 *
 *     goroutine TID [STATE, N minutes, ...]:
 *     function(...)
 *     <tab>file:line +0xoffset
 *     created by function
 *     <tab>file:line +0xoffset
 *
 * The number is the tid. What Go does not print (name, wait channel, labels,
 * what the thread waits for) is inside the brackets, where such tools skip it.
 *
 * Source: Go runtime/traceback.go (goroutineheader, traceback1).
 */
#ifndef COLLECT_DUMP_TEXT_H
#define COLLECT_DUMP_TEXT_H

#include "collect/dump/dump.h"
#include <cpprof/profiles.h>

/* The calling thread comes first, then the others by tid. This call closes the
 * writer. */
enum cpprof_status
cpprof__dump_write_text(const struct cpprof__dump *dump,
                        enum cpprof_symbolize symbolize,
                        struct cpprof_writer writer,
                        struct cpprof_error *error);

#endif
