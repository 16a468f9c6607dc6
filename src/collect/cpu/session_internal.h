/* SPDX-License-Identifier: MIT */
/*
 * What the files of a session share: its parts, and which one there is.
 * session.c starts and stops it, session_drainer.c is its thread,
 * cpu_capture.c counts for those who want profiles of it. See session.h for
 * what it is.
 *
 * Invariants: the ring is the handlers' until `halted`; who adds to the store
 * or changes the list of captures holds drain_lock. Nobody holds drain_lock
 * when asking for a lock of the program's or the loader's.
 */
#ifndef COLLECT_SESSION_INTERNAL_H
#define COLLECT_SESSION_INTERNAL_H

#include "collect/cpu/cpu_capture.h"
#include "collect/cpu/drain.h"
#include "collect/labels/labels.h"
#include "collect/runtime/own_threads.h"
#include "collect/store/spool.h"
#include "collect/threads/engine.h"

#include <pthread.h>
#include <semaphore.h>

struct cpprof__session {
    struct cpprof_cpu_options options; /* of who began it */
    const char *directory;
    bool (*at_scan)(void);
    bool names_threads;
    const struct cpprof__engine *engine;
    const struct cpprof__birth *birth; /* of who began it (life.h) */
    struct cpprof__spool spool;

    struct cpprof__own_lock drain_lock; /* guards what follows */
    struct cpprof__drain drain;
    struct cpprof__labels_reader labels_reader;
    struct cpprof__shared_store
        *shared; /* the current store as captures share it, or NULL */
    struct cpprof__cpu_capture *captures; /* that count with it */

    bool unloaded; /* a module was unloaded since the maps were last read */
    uint64_t cpu_start_ns;
    struct cpprof__own_thread drainer;
    sem_t drainer_is_up;
    bool finish;         /* the drainer is to end */
    void (*last)(void);  /* and to do this; or NULL */
    bool started;        /* all threads are armed */
    bool sampling_ended; /* sampling ended; what was sampled is still there */
};

/* The session of this process, or NULL. It is set when the session has started
 * and cleared before it stops, under the lock. A fork() reads it without the
 * lock. */
struct cpprof__session_current {
    struct cpprof__own_lock lock;
    struct cpprof__session *session;
};
extern struct cpprof__session_current cpprof__session_current;

/* Begin the drain of a session that has its spool; and free what that
 * allocated. */
void
cpprof__session_drain_begin(struct cpprof__session *s);
void
cpprof__session_drain_free(struct cpprof__session *s);

/* Start the thread that empties the ring: 0 or an errno. All signals stay
 * blocked in it, because they are meant for the program. */
int
cpprof__session_start_drainer(struct cpprof__session *s);

/* Empty the ring, under drain_lock: returns how many samples came. */
uint64_t
cpprof__session_drain_locked(struct cpprof__session *s);

/* End sampling and all captures: by the drainer, or by whoever stops the
 * session when that has left. Once. */
void
cpprof__session_end_sampling(struct cpprof__session *s);

/* Samples that found no room. */
uint64_t
cpprof__session_lost(const struct cpprof__session *s);

#endif
