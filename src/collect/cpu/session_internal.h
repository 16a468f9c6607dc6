/* SPDX-License-Identifier: MIT */
/*
 * What the files of a session share: its parts, and which one there is.
 * session.c starts and stops it, session_drainer.c is its thread,
 * cpu_capture.c counts for those who want profiles of it, session_changes.c
 * what it does when the process changes under it. See session.h for what it is.
 *
 * Invariants: the ring is the handlers' until `halted`; who adds to the store
 * or changes the list of captures holds drain_lock. Nobody holds drain_lock
 * when asking for a lock of the program's or the loader's.
 */
#ifndef COLLECT_SESSION_INTERNAL_H
#define COLLECT_SESSION_INTERNAL_H

#include "collect/cpu/cpu_capture.h"
#include "collect/cpu/drain.h"
#include "collect/cpu/session.h"
#include "collect/labels/labels.h"
#include "collect/store/spool.h"
#include "collect/threads/engine.h"

#include <pthread.h>
#include <semaphore.h>

struct cpprof__session {
    struct cpprof__session_plan plan;
    const struct cpprof__engine *engine;
    struct cpprof__spool spool;

    pthread_mutex_t drain_lock; /* guards what follows */
    struct cpprof__drain drain;
    struct cpprof__labels_reader labels_reader;
    struct cpprof__shared_store *shared;  /* the store, for captures; or NULL */
    struct cpprof__cpu_capture *captures; /* that count with it */
    struct cpprof__default_profile
        *default_profile; /* its capture is among them, or was */

    bool unloaded; /* a module, since the maps were last read */
    uint64_t cpu_start_ns;
    pthread_t drainer;
    sem_t drainer_is_up;
    int32_t drainer_tid;
    uint32_t was_alone;  /* see cpprof__own_thread_join() */
    bool finish;         /* the drainer is to end */
    bool writes;         /* and to write the ordinary profile before */
    bool ended;          /* it did */
    bool started;        /* all threads are armed */
    bool sampling_ended; /* sampling ended; what was sampled is still there */
};

enum cpprof__session_state {
    CPPROF__SESSION_IDLE,
    CPPROF__SESSION_STARTING,
    CPPROF__SESSION_RUNNING,
    CPPROF__SESSION_STOPPING,
};

/* The profile of cpprof_cpu_start(), of which there is one. */
struct cpprof__default_profile {
    struct cpprof__cpu_capture capture;
    struct cpprof__cpu_output out;
};

/* The session of this process. Only the states are changed under the lock. Who
 * starts or stops the session, or has captures come and go, holds `change`
 * for as long as that takes; it is taken first. */
struct cpprof__session_life {
    pthread_mutex_t change;
    pthread_mutex_t lock;
    enum cpprof__session_state state;
    struct cpprof__session *session; /* set while RUNNING or STOPPING */
    enum cpprof__session_state default_profile; /* of that profile */
};

extern struct cpprof__session_life cpprof__session_life;

/* Only the process that runs the session may touch its timers; a vfork child
 * has the same memory and another pid. */
bool
cpprof__session_is_ours(void);

/* The drain of a session that has its spool, and what it takes back. */
void
cpprof__session_drain_begin(struct cpprof__session *s);
void
cpprof__session_drain_free(struct cpprof__session *s);

/* Start the thread that empties the ring: 0 or an errno. All signals stay
 * blocked in it: they are the program's. */
int
cpprof__session_start_drainer(struct cpprof__session *s);

/* Empty the ring, under drain_lock: returns how many samples came. */
uint64_t
cpprof__session_drain_locked(struct cpprof__session *s);

/* End sampling and cut all captures: by the drainer, or by who stops the
 * session when that has left. Once. */
void
cpprof__session_end(struct cpprof__session *s);

/* Samples that found no room. */
uint64_t
cpprof__session_lost(const struct cpprof__session *s);

#endif
