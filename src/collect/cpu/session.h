/* SPDX-License-Identifier: MIT */
/*
 * The one CPU profiling session of a process: its parts, and its life. It is
 * there for as long as somebody wants samples: the profile of
 * cpprof_cpu_start() and CPPROF=, which is one, and captures, which are
 * many; the first one starts it, and the last one that leaves ends it.
 */
#ifndef COLLECT_SESSION_H
#define COLLECT_SESSION_H

#include <cpprof/cpprof.h>

#include <stdbool.h>

/* What a session is to do. */
struct cpprof__session_plan {
    struct cpprof_cpu_options options;
    struct cpprof_writer writer; /* where the profile goes at the end, or: */
    const char *directory;       /* record into files there; no profile */
    bool (*at_scan)(void);       /* now and then, by its thread; or NULL */
};

/* Of that one profile. */
enum cpprof_status
cpprof__session_start(const struct cpprof__session_plan *plan,
                      struct cpprof_error *error);
enum cpprof_status
cpprof__session_stop(struct cpprof_error *error);

/* Does it run, or begin, or end? Safety: MT. */
bool
cpprof__session_is_busy(void);

struct cpprof__cpu_capture;

/*
 * Count for a capture whose options are set, from here on; in a session that
 * runs with its own rate, depth and engine, or else in a new one. Leave cuts
 * it (cpu_capture.h); it is then the caller's to write or to free. What fails
 * leaves nothing to be freed.
 */
enum cpprof_status
cpprof__session_begin_capture(struct cpprof__cpu_capture *c,
                              struct cpprof_error *error);
void
cpprof__session_end_capture(struct cpprof__cpu_capture *c);

/*
 * Stop for a process that ends by _exit(), maybe inside a signal handler:
 * gives up where stop would have to wait for a lock that the interrupted code
 * may hold, or for longer than seconds.
 */
void
cpprof__session_stop_with_timeout(unsigned seconds);

/* A module is about to be unloaded, or was: samples taken in it are put in
 * their place while its addresses still mean it. */
void
cpprof__session_before_unload(void);
void
cpprof__session_after_unload(void);

/* fork: what happens before, in the parent, in the child. The child has no
 * session. */
void
cpprof__session_fork_prepare(void);
void
cpprof__session_fork_parent(void);
void
cpprof__session_fork_child(void);

/* exec: nothing of ours may be pending when the new image starts. failed: the
 * program goes on after all. */
void
cpprof__session_exec_begin(void);
void
cpprof__session_exec_failed(void);

#endif
