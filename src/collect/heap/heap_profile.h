/* SPDX-License-Identifier: MIT */
/*
 * Writes a heap profile: from a heap's tables, of this process or left by
 * another one, to the builder or to text.
 */
#ifndef COLLECT_HEAP_PROFILE_H
#define COLLECT_HEAP_PROFILE_H

#include "collect/encode/source.h"
#include "collect/heap/heap_records.h"

/* What a struct cpprof_heap is in the tables. */
uint16_t
cpprof__heap_number(const struct cpprof_heap *heap);

/* In a child made by fork: another thread may have been adding a heap. */
void
cpprof__heaps_in_child(void);

/*
 * The functions that an allocation passes through on its way from the program:
 * they are at the leaf of every stack and tell nothing. For drop_frames of
 * profile.proto, and: is it one of them? name is demangled, with its
 * parameters. ORDER: both know the same functions.
 *
 * They are those that google/pprof drops from profiles in the old formats,
 * without its `allocate`, which programs use as a name, and without Go's; and
 * those that C libraries, jemalloc, mimalloc and the standard C++ library have
 * today.
 */
extern const char cpprof__heap_drop_frames[];
bool
cpprof__heap_hides(const char *name);

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
