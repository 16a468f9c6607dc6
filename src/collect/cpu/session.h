/* SPDX-License-Identifier: MIT */
/*
 * The one CPU profiling session of a process: its parts, and its life. It is
 * there for as long as somebody wants samples: the profile of
 * cpprof_cpu_start() and CPPROF=, which is one, and captures, which are
 * many; the first one starts it, and the last one that leaves ends it.
 */
#ifndef COLLECT_SESSION_H
#define COLLECT_SESSION_H

#include "collect/runtime/life.h"
#include <cpprof/cpprof.h>

#include <stdbool.h>

/* The life of CPU profiles (life.h), whose captures are these. */
extern struct cpprof__life cpprof__cpu_life;

/*
 * A capture of CPU time. In a session that runs it counts with that one's rate,
 * depth and engine, or else in a new one. Checks the options; on failure the
 * writer is closed.
 */
enum cpprof_status
cpprof__cpu_capture_new(const struct cpprof_cpu_options *options,
                        const struct cpprof_writer *writer,
                        struct cpprof_capture **out,
                        struct cpprof_error *error);

/* As cpprof_cpu_start(); with a birth it counts from there, and is written only
 * if it has samples. */
enum cpprof_status
cpprof__cpu_start(const struct cpprof_writer *writer,
                  const struct cpprof_cpu_options *options,
                  const struct cpprof__birth *birth,
                  struct cpprof_error *error);

/* One of a recorder, whose files are in directory. Samples have the names of
 * their threads as labels if names_threads says so. at_scan is called now and
 * then, by a thread of ours. */
enum cpprof_status
cpprof__cpu_recorder_new(const struct cpprof_cpu_options *options,
                         const char *directory, bool names_threads,
                         bool (*at_scan)(void), struct cpprof_capture **out,
                         struct cpprof_error *error);

/* Does the session have samples? For a process that ends. */
bool
cpprof__session_has_samples(void);

/*
 * For a process that ends by _exit(), maybe inside a signal handler, where no
 * thread can be made and no lock may be waited for. The session's own thread
 * calls f as its last act; false: there is none.
 */
bool
cpprof__session_end_by(void (*f)(void));
/* Marks the files of a recorder's session as complete. */
void
cpprof__session_mark_ended(void);

/* A module is about to be unloaded, or was: samples taken in it are put in
 * their place while its addresses still mean it. */
void
cpprof__session_before_unload(void);
void
cpprof__session_after_unload(void);

/* In a child made by fork, which has no session. */
void
cpprof__session_in_child(void);

#endif
