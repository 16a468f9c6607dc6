/* SPDX-License-Identifier: MIT */
/* What the life of the process does to the server of cpprof_http_listen(). */
#ifndef HTTP_LISTEN_H
#define HTTP_LISTEN_H

/* As CPPROF=http= says, if it does; what is wrong is one line on standard
 * error. Once, after cpprof__environment_start(). */
void
cpprof__http_start(void);

/* The process ends. Safety: AS. */
void
cpprof__http_end(void);

/* Around a fork; before all other locks. */
void
cpprof__http_fork_prepare(void);
void
cpprof__http_fork_parent(void);
void
cpprof__http_fork_child(void);

#endif
