/* SPDX-License-Identifier: MIT */
/*
 * The formats that came before profile.proto. Each family has a file with one
 * reader. The readers are tried in the order of the table in legacy.c.
 *
 * A reader gets the bytes and an empty profile (rows.h). It may find out late
 * that a file has another format: then it says *recognized = false, and the
 * profile, however full, is dropped. Else it fills the profile: sample types,
 * period, samples, locations by address, then the memory map, which gives
 * locations their mappings (maps.h); or it fails, and no other reader is asked.
 *
 * Source: profile/legacy_profile.go, legacy_java_profile.go.
 */
#ifndef PROFILE_LEGACY_LEGACY_H
#define PROFILE_LEGACY_LEGACY_H

#include "profile/model/model.h"

struct cpprof__rows;

/* *recognized is false before. */
typedef enum cpprof_status
cpprof__legacy_reader(struct cpprof__rows *rows, bool *recognized,
                      struct cpprof_error *error);

cpprof__legacy_reader cpprof__read_cpu;     /* cpu.c; Java's too */
cpprof__legacy_reader cpprof__read_heap;    /* heap.c; growth, fragments */
cpprof__legacy_reader cpprof__read_count;   /* count.c: Go's "NAME profile" */
cpprof__legacy_reader cpprof__read_threads; /* threads.c: threadz */
cpprof__legacy_reader cpprof__read_contention; /* contention.c */
cpprof__legacy_reader cpprof__read_java;       /* java.c: heapz, contentionz */
cpprof__legacy_reader cpprof__read_jemalloc;   /* jemalloc.c */

/*
 * Read the bytes with one reader. *out stays NULL when it does not recognize
 * them. Errors: the reader's; CPPROF_NOMEM.
 */
enum cpprof_status
cpprof__legacy_try(cpprof__legacy_reader *reader, const char *data, size_t n,
                   struct pprof_profile **out, struct cpprof_error *error);

#define CPPROF__UNRECOGNIZED "unrecognized profile format"

/*
 * Read any of them, and the text formats of text/text.h. Texts of errors are
 * the reference's without "parsing profile: ", which read.c puts in front.
 *
 * Errors: CPPROF_BAD_DATA, with CPPROF__UNRECOGNIZED when no reader knows the
 *         bytes; CPPROF_NOMEM.
 */
enum cpprof_status
cpprof__read_legacy(const char *data, size_t n, struct pprof_profile **out,
                    struct cpprof_error *error);

/* Set drop_frames and keep_frames from the sample types, as is right for the
 * family: the frames of allocators, locks, or the CPU profiler's handler. */
enum cpprof_status
cpprof__legacy_frames(struct pprof_profile *p, struct cpprof_error *error);

#endif
