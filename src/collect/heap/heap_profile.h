/* SPDX-License-Identifier: MIT */
/*
 * Writes a heap profile: from a heap's tables, of this process or left by
 * another one, to the builder or to text.
 */
#ifndef COLLECT_HEAP_PROFILE_H
#define COLLECT_HEAP_PROFILE_H

#include "collect/encode/source.h"
#include "collect/heap/heap_records.h"

/*
 * This process's heap as it is to be written now: of options heap, symbolize
 * and CPPROF_FLAG_LABELS are looked at, the last from now on.
 *
 * Errors: CPPROF_UNSUPPORTED.
 */
enum cpprof_status
cpprof__heap_own_source(const struct cpprof_heap_options *options,
                        struct cpprof__source *source,
                        struct cpprof_error *error);

/* The size in options is not read. This call closes the writer. */
enum cpprof_status
cpprof__heap_profile_write(const struct cpprof__source *source,
                           const struct cpprof_heap_options *options,
                           struct cpprof_writer writer,
                           struct cpprof_error *error);

/* The two halves of that, for records that were taken before. */
enum cpprof_status
cpprof__heap_write_proto(const struct cpprof__source *source,
                         const struct cpprof_heap_options *options,
                         const struct cpprof__heap_records *records,
                         struct cpprof_writer writer,
                         struct cpprof_error *error);
enum cpprof_status
cpprof__heap_write_text(const struct cpprof__source *source,
                        const struct cpprof_heap_options *options,
                        const struct cpprof__heap_records *records,
                        struct cpprof_writer writer,
                        struct cpprof_error *error);

#endif
