/* SPDX-License-Identifier: MIT */
/*
 * A capture is the samples of a stretch of time: the profile of
 * cpprof_cpu_start(), or one of <cpprof/captures.h>. All captures count with
 * the stores of the one session. A capture knows what the stores had counted
 * when it began. When it ends it takes all that it needs, whatever becomes of
 * the session, and whoever ended it writes it.
 *
 * A store that becomes full is detached for the captures that counted with it.
 * The oldest detached stores are given up when all of them would take more than
 * CPPROF__CAPTURE_BYTES; their samples count as lost.
 */
#ifndef COLLECT_CPU_CAPTURE_H
#define COLLECT_CPU_CAPTURE_H

#include "collect/cpu/cpu_profile.h"
#include "collect/runtime/life.h"
#include "collect/store/spool.h"
#include "collect/store/store_segment.h"

/* Tunable: memory for detached stores, of all captures together. More allows
 * longer captures of programs that go on to make new stacks or labels. */
#define CPPROF__CAPTURE_BYTES (64u * 1024 * 1024)
/* The most stores that one capture has segments of. */
#define CPPROF__CAPTURE_SEGMENTS 32u

struct cpprof__session;

struct cpprof__cpu_segment {
    struct cpprof__shared_store *shared;
    struct cpprof__store_base base;
};

/* The profile of a capture while it is written. */
struct cpprof__cpu_output {
    struct cpprof__cpu_profile profile;
    bool has_profile; /* it was begun, and owns the writer */
    enum cpprof_status failed;
    struct cpprof_error error;
};

struct cpprof__cpu_capture {
    struct cpprof_capture base;
    struct cpprof_cpu_options options; /* checked */
    const char *directory;             /* of a recorder: where its files are */
    bool (*at_scan)(void);             /* a recorder's: called at each scan */
    bool names_threads;                /* a recorder's: drain.h */
    struct cpprof__cpu_output out;

    /* Guarded by the session's drain_lock while it is counting. */
    struct cpprof__cpu_capture *next;
    bool is_counting;
    bool failed;  /* no memory */
    bool streams; /* full stores are written at once, by our thread */

    struct cpprof__spool_head head; /* of this stretch, set when it ends */
    uint64_t lost;
    uint32_t n_segments;
    struct cpprof__cpu_segment
        segments[CPPROF__CAPTURE_SEGMENTS]; /* oldest first */
    struct cpprof__store last;              /* of the last segment */

    /* Of the session when it began. */
    uint64_t lost_before, records_before;
    uint64_t cpu_before_ns;
    uint32_t seen_before, armed_before;
};

/* ---- with the session's drain_lock held ------------------------------- */

/* Count from here on. from_start: also what the session has sampled already.
 * False: no memory. */
bool
cpprof__cpu_capture_begin(struct cpprof__session *s,
                          struct cpprof__cpu_capture *c, bool from_start);
/* Count no more. Nothing happens if it has ended already. */
void
cpprof__cpu_capture_end(struct cpprof__session *s,
                        struct cpprof__cpu_capture *c);
void
cpprof__cpu_capture_end_all(struct cpprof__session *s);

/* The store is full: detach it if somebody counts with it, and go on with an
 * empty one. False: there is none to be had. */
bool
cpprof__cpu_capture_next_store(struct cpprof__session *s);

/* ---- afterwards ------------------------------------------------------- */

/* Free all memory of a capture that does not count. */
void
cpprof__cpu_capture_let_go(struct cpprof__cpu_capture *c);

/* Write what the current store has, which is full. */
void
cpprof__cpu_capture_stream(struct cpprof__cpu_capture *c);

/* Write a capture that has ended, and close the writer. The names that are
 * found are remembered (names.h). */
enum cpprof_status
cpprof__cpu_capture_write(struct cpprof__cpu_capture *c,
                          struct cpprof_error *error);

#endif
