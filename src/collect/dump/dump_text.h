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
 * The number is the tid. What Go does not have (name, wait channel, labels,
 * what it waits for) stands in the brackets, where such tools skip it.
 *
 * Source: Go runtime/traceback.go (goroutineheader, traceback1).
 */
#ifndef COLLECT_DUMP_TEXT_H
#define COLLECT_DUMP_TEXT_H

#include "collect/dump/dump.h"
#include <cpprof/profiles.h>

/* The caller first, then by tid. The writer is closed by this call. */
enum cpprof_status
cpprof__dump_write_text(const struct cpprof__dump *dump,
                        enum cpprof_symbolize symbolize,
                        struct cpprof_writer writer,
                        struct cpprof_error *error);

#endif
