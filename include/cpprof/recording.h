/* SPDX-License-Identifier: MIT */
/*
 * Read what a profiled process left behind: the recorder's side.
 *
 * A process that runs with CPPROF=record=DIR keeps its samples in shared files
 * in DIR, one set per executed image, readable while it runs and after it
 * ended, whatever ended it. `cpprof record` is made of this.
 */
#ifndef CPPROF_RECORDING_H
#define CPPROF_RECORDING_H

#include <stddef.h>
#include <stdint.h>

#include <cpprof/cpu.h>
#include <cpprof/heap.h>
#include <cpprof/profiles.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cpprof_recording; /* all recorded images of one directory */

/* One executed image of one process. */
struct cpprof_recorded_image {
    int32_t pid;
    uint32_t image;         /* 0, 1, ...: execs of the same pid, in order */
    const char *name;       /* base name of the executable */
    uint64_t n_samples;     /* delivered, overruns counted */
    uint64_t n_lost;        /* samples that found no room */
    uint64_t n_threads;     /* threads seen */
    uint64_t start_ns;      /* CLOCK_REALTIME */
    uint64_t duration_ns;   /* until its end, or until now if it still runs */
    const char *engine;     /* as in the profile's comment */
    uint64_t pid_namespace; /* the pid is of it: the inode of /proc/PID/ns/pid;
                             * 0: unknown */
};

/*
 * Make an empty directory ready to be recorded into; call it before the first
 * process starts that does. The calling thread is the recorder: when it ends,
 * whatever ends it, these processes stop to sample.
 *
 * Errors:  CPPROF_SYSTEM.
 * Safety:  MT.
 */
CPPROF_API enum cpprof_status
cpprof_recording_prepare(const char *directory, struct cpprof_error *error);

/*
 * Read what is in directory now. Files that do not belong to the directory's
 * owner are left out. If this process has called cpprof_recording_stop(), the
 * call first waits until live processes have stopped, for at most 1.5 s. A
 * directory without any image is fine.
 *
 * Errors:  CPPROF_NOMEM, CPPROF_SYSTEM.
 * Owner:   the caller frees *recording with cpprof_recording_free().
 * Safety:  OBJ.
 */
CPPROF_API enum cpprof_status
cpprof_recording_read(const char *directory,
                      struct cpprof_recording **recording,
                      struct cpprof_error *error);
CPPROF_API void
cpprof_recording_free(struct cpprof_recording *recording);

/*
 * Like cpprof_recording_read(), but only of processes that have ended, while
 * others run; max images and max heaps at most. A caller that removes them
 * again and again, with cpprof_recording_remove(), needs space for the running
 * processes only.
 */
CPPROF_API enum cpprof_status
cpprof_recording_read_ended(const char *directory, size_t max,
                            struct cpprof_recording **recording,
                            struct cpprof_error *error);

/* Remove the files of everything in the recording, which then can no longer be
 * written. Safety: OBJ. */
CPPROF_API void
cpprof_recording_remove(const struct cpprof_recording *recording);

/* The images, ordered by pid and then by time. Strings live as long as the
 * recording. Safety: OBJ. */
CPPROF_API size_t
cpprof_recording_image_count(const struct cpprof_recording *recording);
CPPROF_API const struct cpprof_recorded_image *
cpprof_recording_image_at(const struct cpprof_recording *recording,
                          size_t index);

/*
 * Write one image's CPU profile, symbolized.
 *
 * Shape, units: as cpprof_cpu_start(). Of options only symbolize and
 *          the form (CPPROF_FLAG_LEGACY, CPPROF_FLAG_NO_DECOYS) are looked at;
 *          NULL for defaults.
 * Errors:  CPPROF_NOMEM, CPPROF_SYSTEM (a write failed).
 * Owner:   the writer is closed by this call.
 * Safety:  OBJ.
 */
CPPROF_API enum cpprof_status
cpprof_recording_write_cpu(struct cpprof_recording *recording, size_t index,
                           const struct cpprof_writer *writer,
                           const struct cpprof_cpu_options *options,
                           struct cpprof_error *error);

/* cpprof_recording_write_cpu() to the file at path, in one call: with a writer
 * of cpprof_writer_to_path(), whose errors come too. Safety: as that. */
CPPROF_API enum cpprof_status
cpprof_recording_write_cpu_to_path(struct cpprof_recording *recording,
                                   size_t index, const char *path,
                                   const struct cpprof_cpu_options *options,
                                   struct cpprof_error *error);

/* The heap of one executed image; a forked child that sampled an allocation is
 * one of its own, which goes on from what its parent had. */
struct cpprof_recorded_heap {
    int32_t pid;
    uint32_t image;         /* as above; numbered apart from those */
    uint32_t is_forked;     /* not the image's first process */
    const char *name;       /* base name of the executable */
    const char *owner;      /* whose malloc it is when it is not ours, or NULL:
                             * then nothing was sampled */
    uint64_t n_samples;     /* allocations that were sampled */
    uint64_t n_lost;        /* those that found no room */
    uint64_t alloc_bytes;   /* estimates, as in the profile */
    uint64_t inuse_objects; /* when it ended, or now */
    uint64_t inuse_bytes;
    int64_t rate;           /* of the sampling, at the end */
    uint64_t start_ns;      /* CLOCK_REALTIME */
    uint64_t end_ns;        /* 0: it did not end by exit, or runs */
    uint64_t pid_namespace; /* as above; of the image's first process */
};

/* The heaps, ordered by pid and then by time. Strings live as long as the
 * recording. Safety: OBJ. */
CPPROF_API size_t
cpprof_recording_heap_count(const struct cpprof_recording *recording);
CPPROF_API const struct cpprof_recorded_heap *
cpprof_recording_heap_at(const struct cpprof_recording *recording,
                         size_t index);

/*
 * Write one heap profile, symbolized.
 *
 * Shape, units: as cpprof_heap_write(). options->heap is not looked
 *          at; NULL for defaults.
 * Errors:  CPPROF_NOMEM, CPPROF_SYSTEM, CPPROF_INVALID.
 * Owner:   the writer is closed by this call.
 * Safety:  OBJ.
 */
CPPROF_API enum cpprof_status
cpprof_recording_write_heap(struct cpprof_recording *recording, size_t index,
                            const struct cpprof_writer *writer,
                            const struct cpprof_heap_options *options,
                            struct cpprof_error *error);

/* cpprof_recording_write_heap() to the file at path, in one call: with a writer
 * of cpprof_writer_to_path(), whose errors come too. Safety: as that. */
CPPROF_API enum cpprof_status
cpprof_recording_write_heap_to_path(struct cpprof_recording *recording,
                                    size_t index, const char *path,
                                    const struct cpprof_heap_options *options,
                                    struct cpprof_error *error);

/* What threads waited for in the same process image, and index, as a heap. */
struct cpprof_recorded_waits {
    uint64_t n_block; /* waits, estimated */
    uint64_t block_ns;
    uint64_t n_mutex; /* of those charged to who held a lock */
    uint64_t mutex_ns;
    uint64_t n_wall; /* samples by wall time, and the time that they are */
    uint64_t wall_ns;
    uint64_t n_lost; /* waits whose stack found no room; in the above, too */
};

/* Valid as long as the recording. Safety: OBJ. */
CPPROF_API const struct cpprof_recorded_waits *
cpprof_recording_waits_at(const struct cpprof_recording *recording,
                          size_t index);

/*
 * Write the waits of one image as a profile.
 *
 * name     "block" or "mutex"; "wall" or "offcpu": what was recorded of it.
 *
 * Shape, units: as cpprof_profile_write() and cpprof_wall_start().
 *          NULL: default options; of wall only symbolize is looked at.
 * Errors:  CPPROF_NOMEM, CPPROF_SYSTEM, CPPROF_INVALID.
 * Owner:   the writer is closed by this call.
 * Safety:  OBJ.
 */
CPPROF_API enum cpprof_status
cpprof_recording_write_waits(struct cpprof_recording *recording, size_t index,
                             const char *name,
                             const struct cpprof_writer *writer,
                             const struct cpprof_profile_options *options,
                             struct cpprof_error *error);

/* cpprof_recording_write_waits() to the file at path, in one call: with a
 * writer of cpprof_writer_to_path(), whose errors come too. Safety: as that. */
CPPROF_API enum cpprof_status
cpprof_recording_write_waits_to_path(
    struct cpprof_recording *recording, size_t index, const char *name,
    const char *path, const struct cpprof_profile_options *options,
    struct cpprof_error *error);

/*
 * Tell every process that records into directory to stop sampling; they do so
 * within a second.
 *
 * Errors:  CPPROF_INVALID (this process has not prepared the directory).
 * Safety:  MT.
 */
CPPROF_API enum cpprof_status
cpprof_recording_stop(const char *directory, struct cpprof_error *error);

#ifdef __cplusplus
}
#endif

#endif
