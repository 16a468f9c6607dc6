/* SPDX-License-Identifier: MIT */
/*
 * The life of a profile that counts between two moments, the same for every
 * sampler (CPU time, wall time, interpreted code):
 *
 *     created --begin--> counting --end--> ended --write--> written, freed
 *
 * A sampler runs for as long as somebody counts with it. Who begins first
 * starts it, who comes later joins, who leaves is cut (and has all it needs
 * from then on), and the last one who leaves stops it. A recorder reads the
 * sampler's files while they are written: it is the first or it is refused,
 * and when it ends the sampler stops, whoever else counts.
 *
 * One capture of each sampler is the default profile, that of cpprof_..._start
 * and _stop. Its lock is held from the call of stop until the file is written.
 * So a second stop, from any thread, returns when there is a file, and a start
 * meanwhile waits and then begins a new one, as Go has it.
 *
 * Locks: that of the default profile first, then that of the life; under the
 * latter the sampler takes its own. Neither is held for a child made by fork,
 * where no sampler runs and the captures of the parent only can be freed.
 */
#ifndef COLLECT_LIFE_H
#define COLLECT_LIFE_H

#include "collect/runtime/own_lock.h"
#include <cpprof/writer.h>

struct cpprof__life;

/* What all captures have; the sampler's own follows. */
struct cpprof_capture {
    struct cpprof__life *life;
    struct cpprof_writer writer; /* closed when the capture is freed */
    bool is_recorder;            /* writes nothing */
    bool is_path;                /* its writer is cpprof_writer_to_path()'s */
    bool needs_samples;          /* without any there is no file */
    int32_t pid;                 /* of the process that it was begun in */
    uint32_t run;                /* of the sampler that it counts with */
};

/* What a sampler does. None of these is called by two threads at once, but for
 * write and free, which touch nothing but the capture. */
struct cpprof__sampler_ops {
    const char *name; /* "cpu" */
    const char *busy; /* what a second default profile is told */

    /* True: it samples no more, because its recorder has left; NULL: no. */
    bool (*is_over)(void);
    /* Begin to sample, and to count for the first capture. */
    enum cpprof_status (*start)(struct cpprof_capture *first,
                                struct cpprof_error *error);
    /* Count for one more, from here on. */
    enum cpprof_status (*join)(struct cpprof_capture *c,
                               struct cpprof_error *error);
    /* Count for it no more. */
    void (*cut)(struct cpprof_capture *c);
    /* Cut those that are left, and sample no more. */
    void (*stop)(void);
    /* The file of a capture that was cut. Closes the writer. */
    enum cpprof_status (*write)(struct cpprof_capture *c,
                                struct cpprof_error *error);
    /* All memory of one that is not counting. */
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

/* A capture was created: its writer, or none for a recorder, and what all of
 * them have. n_bytes: with what is the sampler's. NULL: no memory. */
void *
cpprof__capture_new(struct cpprof__life *life, size_t n_bytes,
                    const struct cpprof_writer *writer);

/* Close its writer as failed, free it. */
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

/* In a child made by fork, which writes no file for what its parent is asked:
 * only if it has samples of its own. */
void
cpprof__default_needs_samples(struct cpprof__life *life);

/* Is there one of this process? A vfork child has the memory of its parent and
 * another pid. Safety: AS. */
bool
cpprof__default_runs(const struct cpprof__life *life);

/* In a child made by fork. */
void
cpprof__life_in_child(struct cpprof__life *life);

#endif
