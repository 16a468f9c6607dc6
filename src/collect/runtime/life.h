/* SPDX-License-Identifier: MIT */
/*
 * The life of a profile that counts between two moments, the same for every
 * sampler (CPU time, wall time, interpreted code):
 *
 *     created --begin--> counting --end--> ended --write--> written, freed
 *
 * A sampler runs for as long as a capture counts with it: the first one that
 * begins starts it, and the last one that ends stops it. A capture that has
 * ended holds all that it needs to be written. A recorder reads the sampler's
 * files while they are written, so it must be the first or it is refused, and
 * when it ends the sampler stops, whoever else counts.
 *
 * One capture of each sampler is the default profile, that of cpprof_..._start
 * and _stop. Its lock is held from the call of stop until the file is written.
 * So a second stop, from any thread, returns when there is a file, and a start
 * meanwhile waits and then begins a new one, as in Go.
 *
 * Locks: that of the default profile first, then that of the life; under the
 * latter the sampler takes its own. A fork does not take them. In the child no
 * sampler runs, and captures of the parent can only be freed.
 */
#ifndef COLLECT_LIFE_H
#define COLLECT_LIFE_H

#include "collect/runtime/birth.h"
#include "collect/runtime/own_lock.h"
#include <cpprof/writer.h>

struct cpprof__life;

/* The part that all captures have; the sampler's part follows. */
struct cpprof_capture {
    struct cpprof__life *life;
    struct cpprof_writer writer; /* closed when the capture is freed */
    bool is_recorder;            /* writes nothing */
    bool is_path;                /* its writer is cpprof_writer_to_path()'s */
    bool needs_samples;          /* without any there is no file */
    const struct cpprof__birth *birth; /* it counts from there; NULL: from its
                                          own beginning */
    int32_t pid;                       /* of the process that it was begun in */
    uint32_t run;                      /* of the sampler that it counts with */
};

/* What a sampler does. None of these is called by two threads at once, except
 * write and free, which touch only the capture. */
struct cpprof__sampler_ops {
    const char *name; /* "cpu" */
    const char *busy; /* the error of a second default profile */

    /* Does it sample no more, because its recorder has left? NULL: never. */
    bool (*is_over)(void);
    /* Start to sample, and begin to count for the first capture. */
    enum cpprof_status (*start)(struct cpprof_capture *first,
                                struct cpprof_error *error);
    /* Count for one more capture from here on. NULL: there is only one. */
    enum cpprof_status (*begin)(struct cpprof_capture *c,
                                struct cpprof_error *error);
    /* Count for it no more; others go on. */
    void (*end)(struct cpprof_capture *c);
    /* End the captures that are left, and sample no more. */
    void (*stop)(void);
    /* Write the file of a capture that has ended. Closes the writer. */
    enum cpprof_status (*write)(struct cpprof_capture *c,
                                struct cpprof_error *error);
    /* Free all memory of a capture that does not count. */
    void (*free)(struct cpprof_capture *c);
};

struct cpprof__life {
    const struct cpprof__sampler_ops *ops;

    struct cpprof__own_lock lock; /* guards these */
    uint32_t run;                 /* number of the sampler's last start */
    uint32_t n_counting;          /* 0: it does not run */

    struct cpprof__own_lock default_lock;
    struct cpprof_capture *default_profile; /* counting; NULL: none is */
};

/* Make a capture with its writer, or without one for a recorder, and fill in
 * the common part. n_bytes: its size with the sampler's part. NULL: no memory.
 */
void *
cpprof__capture_new(struct cpprof__life *life, size_t n_bytes,
                    const struct cpprof_writer *writer);

/* Close its writer as failed, and free it. */
void
cpprof__capture_drop(struct cpprof_capture *c);

/* Drops it on failure. Safety: MT. */
enum cpprof_status
cpprof__capture_begin(struct cpprof_capture *c, struct cpprof_error *error);
void
cpprof__capture_end(struct cpprof_capture *c);

/* On a thread of ours, so that it is in no profile. Frees the capture. */
enum cpprof_status
cpprof__capture_write(struct cpprof_capture *c, struct cpprof_error *error);

/* ---- the default profile ---------------------------------------------- */

/* Drops it on failure. Errors: CPPROF_BUSY, when there is one. */
enum cpprof_status
cpprof__default_start(struct cpprof_capture *c, struct cpprof_error *error);

/* End and write it, if there is one. From a writer's own functions this does
 * nothing. */
enum cpprof_status
cpprof__default_stop(struct cpprof__life *life, struct cpprof_error *error);

/* At the end of the process. Of the writers that a program gave only those of
 * cpprof_writer_to_path() are still safe to use; with another the profile is
 * not written, which is an error. */
enum cpprof_status
cpprof__default_exit(struct cpprof__life *life, uint64_t until_ns,
                     struct cpprof_error *error);

/* Is there one of this process? A vfork child has the memory of its parent and
 * another pid. Safety: AS. */
bool
cpprof__default_runs(const struct cpprof__life *life);

/* In a child made by fork. */
void
cpprof__life_in_child(struct cpprof__life *life);

#endif
