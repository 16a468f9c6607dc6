/* SPDX-License-Identifier: MIT */
/*
 * The profiler's own threads, which are in no profile: each says so itself when
 * it starts and when it ends.
 */
#ifndef COLLECT_OWN_THREADS_H
#define COLLECT_OWN_THREADS_H

#include <stdbool.h>
#include <stdint.h>

/* The calling thread. Safety: MT. */
void
cpprof__own_thread_begin(void);
void
cpprof__own_thread_end(void);

bool
cpprof__is_own_thread(int32_t tid);

/* How many there are. */
uint32_t
cpprof__own_threads(void);

/* In a forked child: none. */
void
cpprof__own_threads_fork_child(void);

#endif
