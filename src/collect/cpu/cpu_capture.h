/* SPDX-License-Identifier: MIT */
/*
 * One who wants the samples of a stretch of time: the profile of
 * cpprof_cpu_start(), or a capture. All count with the one session's
 * stores; a capture knows what they had counted when it began, and is cut when
 * it ends: from then on it has what it needs, whatever becomes of the session,
 * and is written by whoever ended it.
 *
 * A store that becomes full is put aside for the captures that counted with
 * it. The oldest are given up when they would take more than
 * CPPROF__CAPTURE_BYTES; their samples are lost ones then.
 */
#ifndef COLLECT_CPU_CAPTURE_H
#define COLLECT_CPU_CAPTURE_H

#include "collect/cpu/cpu_profile.h"
#include "collect/runtime/life.h"
#include "collect/store/spool.h"
#include "collect/store/store_segment.h"

/* Tunable: memory for stores that are full, of all captures together. More:
 * longer captures of programs whose stacks or labels are ever new. */
#define CPPROF__CAPTURE_BYTES (64u * 1024 * 1024)
/* Stores that one capture reaches over, at most. */
#define CPPROF__CAPTURE_SEGMENTS 32u

struct cpprof__session;

struct cpprof__cpu_segment {
    struct cpprof__shared_store *shared;
    struct cpprof__store_base base;
};

/* The profile of a capture on its way out. */
struct cpprof__cpu_output {
    struct cpprof__cpu_profile profile;
    bool has_profile; /* it was begun; the writer is its */
    enum cpprof_status failed;
    struct cpprof_error error;
};

struct cpprof__cpu_capture {
    struct cpprof_capture base;
    struct cpprof_cpu_options options; /* checked */
    const char *directory;             /* a recorder's: its files are there */
    bool (*at_scan)(void); /* the same: now and then, by our thread */
    struct cpprof__cpu_output out;

    /* Guarded by the session's drain_lock while it is counting. */
    struct cpprof__cpu_capture *next;
    bool is_counting;
    bool failed;  /* no memory */
    bool streams; /* full stores are written at once, by our thread */

    struct cpprof__spool_head head; /* about this stretch, once it was cut */
    uint64_t lost;
    uint32_t n_segments;
    struct cpprof__cpu_segment
        segments[CPPROF__CAPTURE_SEGMENTS]; /* oldest first */
    struct cpprof__store_view last; /* of the last part, which may go on */

    /* Of the session when it began. */
    uint64_t lost_before, records_before;
    uint64_t cpu_before_ns;
    uint32_t seen_before, armed_before;
};

/* ---- with the session's drain_lock held ------------------------------- */

/* Count from here on; from_start: all that the session has sampled, too.
 * False: no memory. */
bool
cpprof__cpu_capture_begin(struct cpprof__session *s,
                          struct cpprof__cpu_capture *c, bool from_start);
/* Count no more. Nothing happens when it was cut already. */
void
cpprof__cpu_capture_end(struct cpprof__session *s,
                        struct cpprof__cpu_capture *c);
void
cpprof__cpu_capture_end_all(struct cpprof__session *s);

/* The store is full: put it aside if somebody counts with it, and go on with
 * an empty one. False: that cannot be had. */
bool
cpprof__cpu_capture_next_store(struct cpprof__session *s);

/* ---- afterwards ------------------------------------------------------- */

/* Take all memory back that a capture holds which is not counting. */
void
cpprof__cpu_capture_let_go(struct cpprof__cpu_capture *c);

/* Write what the store of now has, which is full. */
void
cpprof__cpu_capture_stream(struct cpprof__cpu_capture *c);

/* Write a capture that was cut, close the writer. The names that are found are
 * remembered (names.h). */
enum cpprof_status
cpprof__cpu_capture_write(struct cpprof__cpu_capture *c,
                          struct cpprof_error *error);

#endif
