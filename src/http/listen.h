/* SPDX-License-Identifier: MIT */
/* What the life of the process does to the server of cpprof_http_listen(). */
#ifndef HTTP_LISTEN_H
#define HTTP_LISTEN_H

#include <cpprof/status.h>

#include <stdbool.h>

/* As CPPROF=http= says, if it does; what is wrong is one line on standard
 * error. Once, after cpprof__environment_start(). */
void
cpprof__http_start(void);

/* The process ends. Safety: AS. */
void
cpprof__http_end(void);

/* Around a fork; before all other locks. begin_child comes when all of the
 * library works again. */
void
cpprof__http_fork_prepare(void);
void
cpprof__http_fork_parent(void);
void
cpprof__http_fork_child(void);
void
cpprof__http_begin_child(void);

/* This process has called setsid(). */
void
cpprof__http_daemonized(void);

/* ---- between listen.c and follow.c --------------------------------------- */

/* CPPROF had this process listen, or it does not listen any more. */
void
cpprof__http_follow_note(bool serves);

/* As CPPROF=http= says. */
bool
cpprof__http_listen_as_asked(struct cpprof_error *error);

/* On a thread of the profiler's own. 0 or an errno. */
int
cpprof__http_thread(void (*run)(void *arg), void *arg);

#endif
