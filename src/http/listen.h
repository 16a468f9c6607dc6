/* SPDX-License-Identifier: MIT */
/* What the server of cpprof_http_listen() has to do at start, fork and end of
 * the process. */
#ifndef HTTP_LISTEN_H
#define HTTP_LISTEN_H

#include <cpprof/status.h>

#include <stdbool.h>

/* Listen if CPPROF=http= asks for it. An error is one line on standard error.
 * Call it once, after cpprof__environment_start(). */
void
cpprof__http_start(void);

/* The process ends. Safety: AS. */
void
cpprof__http_end(void);

/* In a child made by fork; begin_child comes when all of the library works
 * again. */
void
cpprof__http_in_child(void);
void
cpprof__http_begin_child(void);

/* This process has called setsid(). */
void
cpprof__http_daemonized(void);

/* ---- between listen.c and follow.c --------------------------------------- */

/* Note that this process listens because of CPPROF, or that it has stopped. */
void
cpprof__http_follow_note(bool serves);

/* Where each process has a socket of its own: listen when this one has lived
 * for a second. False: they have one together. */
bool
cpprof__http_serve_later(void);

/* Listen at the address of CPPROF=http=. */
bool
cpprof__http_listen_as_asked(struct cpprof_error *error);

/* On a thread of the profiler's own. 0 or an errno. */
int
cpprof__http_thread(bool (*run)(void *arg), void *arg);

/* Have the server's threads see that they are to pause
 * (collect/runtime/own_threads.h). */
void
cpprof__http_wake_up(void);

#endif
