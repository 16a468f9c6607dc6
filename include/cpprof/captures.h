/* SPDX-License-Identifier: MIT */
/*
 * Profiles of a stretch of time, as many at once as are asked for: captures of
 * CPU or wall time, and the difference between two moments of a profile that
 * counts up. HTTP handlers and agents are made of them; a program that wants
 * one CPU profile uses cpprof_cpu_start().
 */
#ifndef CPPROF_CAPTURES_H
#define CPPROF_CAPTURES_H

#include <cpprof/cpu.h>
#include <cpprof/profiles.h>
#include <cpprof/wall.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cpprof_capture;

/*
 * Begin to capture. Several run at once, and beside the profile of
 * cpprof_cpu_start() (or _wall_): they are fed by one sampler. While
 * one runs, its rate, depth and engine are those of a later capture, too, which
 * says so by its period; flags and symbolization are of each capture.
 *
 * writer   receives the whole file at the end; closed by cpprof_capture_stop(),
 *          or by this call when it fails.
 * options  NULL for defaults.
 * capture  NULL on failure, which cpprof_capture_stop() takes.
 *
 * Shape, units: as cpprof_cpu_start() and cpprof_wall_start();
 *          time and duration are those of the capture.
 * Memory:  8 bytes for each (stack, label set) sampled before (wall: 16) and 16
 *          (40) for each of its own; of all CPU captures together at most 64
 *          MiB of full tables: what comes before that is lost samples.
 * Errors:  CPPROF_BUSY (128 captures are not yet ended and written),
 *          CPPROF_INVALID, CPPROF_NOMEM, CPPROF_SYSTEM, CPPROF_UNSUPPORTED.
 * Owner:   the caller ends *capture with cpprof_capture_stop(). In a child made
 *          by fork it may only be ended, which fails there with CPPROF_INVALID
 *          and leaves the writer alone: it is the parent's.
 * Safety:  MT. Not AS.
 */
CPPROF_API enum cpprof_status
cpprof_capture_start_cpu(const struct cpprof_writer *writer,
                         const struct cpprof_cpu_options *options,
                         struct cpprof_capture **capture,
                         struct cpprof_error *error);

/* cpprof_capture_start_cpu() to the file at path, in one call: with a writer of
 * cpprof_writer_to_path(), whose errors come too. Safety: as that. */
CPPROF_API enum cpprof_status
cpprof_capture_start_cpu_to_path(const char *path,
                                 const struct cpprof_cpu_options *options,
                                 struct cpprof_capture **capture,
                                 struct cpprof_error *error);
CPPROF_API enum cpprof_status
cpprof_capture_start_wall(const struct cpprof_writer *writer,
                          const struct cpprof_wall_options *options,
                          struct cpprof_capture **capture,
                          struct cpprof_error *error);

/* cpprof_capture_start_wall() to the file at path, in one call: with a writer
 * of cpprof_writer_to_path(), whose errors come too. Safety: as that. */
CPPROF_API enum cpprof_status
cpprof_capture_start_wall_to_path(const char *path,
                                  const struct cpprof_wall_options *options,
                                  struct cpprof_capture **capture,
                                  struct cpprof_error *error);

/*
 * End a capture, write it, close its writer and free it. Files are made by one
 * thread of cpprof's after the other, in memory; the writer is then called by
 * the caller's, which holds up nobody else.
 *
 * capture  NULL is fine.
 *
 * Errors:  CPPROF_SYSTEM (a write failed), CPPROF_NOMEM.
 * Safety:  MT. Not AS.
 */
CPPROF_API enum cpprof_status
cpprof_capture_stop(struct cpprof_capture *capture, struct cpprof_error *error);

/* The values of a profile at one moment. */
struct cpprof_snapshot;

/*
 * Note where a profile stands: any but the CPU and wall profiles, those that
 * the program made included.
 *
 * options  flags are those of all that is written later: those of
 *          cpprof_profile_write() but CPPROF_FLAG_LEGACY, and
 *          CPPROF_FLAG_SINCE_START and _IN_USE; debug must be 0; NULL for
 *          defaults.
 *
 * Units:   40 bytes for each stack and size class of a heap, 24 for a stack of
 *          block and mutex, 16 of others.
 * Errors:  CPPROF_NOMEM, CPPROF_INVALID, CPPROF_SYSTEM, CPPROF_UNSUPPORTED
 *          (as cpprof_profile_write()).
 * Owner:   the caller frees *snapshot.
 * Safety:  MT. Not AS.
 */
CPPROF_API enum cpprof_status
cpprof_snapshot_new(struct cpprof_profile *profile,
                    const struct cpprof_profile_options *options,
                    struct cpprof_snapshot **snapshot,
                    struct cpprof_error *error);

/*
 * Write what was added since (or is less: in-use values and counts of threads
 * may be negative), gzipped protobuf, and have the snapshot stand at now.
 *
 * options  debug must be 0, flags 0 or those of the snapshot; NULL for
 *          defaults.
 *
 * Shape:   as cpprof_profile_write(), samples without any difference left out;
 *          time is that of now, duration that since the snapshot. In a child
 *          made by fork block and mutex count from the fork on.
 * Errors:  CPPROF_NOMEM, CPPROF_SYSTEM, CPPROF_INVALID; the snapshot is then
 *          as it was.
 * Owner:   the writer is closed by this call.
 * Safety:  OBJ.
 * Source:  Go net/http/pprof (serveDeltaProfile).
 */
CPPROF_API enum cpprof_status
cpprof_snapshot_write_delta(struct cpprof_snapshot *snapshot,
                            const struct cpprof_writer *writer,
                            const struct cpprof_profile_options *options,
                            struct cpprof_error *error);

/* cpprof_snapshot_write_delta() to the file at path, in one call: with a writer
 * of cpprof_writer_to_path(), whose errors come too. Safety: as that. */
CPPROF_API enum cpprof_status
cpprof_snapshot_write_delta_to_path(
    struct cpprof_snapshot *snapshot, const char *path,
    const struct cpprof_profile_options *options, struct cpprof_error *error);
CPPROF_API void
cpprof_snapshot_free(struct cpprof_snapshot *snapshot);

#ifdef __cplusplus
}
#endif

#endif
