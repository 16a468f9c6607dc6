/* SPDX-License-Identifier: MIT */
/* Making threads of the profiler's own (collect/runtime/own_threads.h). */
#ifndef COLLECT_OWN_START_H
#define COLLECT_OWN_START_H

#include <pthread.h>

/* Run f on one that nobody waits for, with a stack for libdw and all signals
 * blocked. 0 or an errno. Safety: MT. Not AS. */
int
cpprof__own_thread_start(void (*f)(void *arg), void *arg);

/* As pthread_create(): a library that one of them uses makes a thread, which is
 * ours, too. */
int
cpprof__own_thread_create(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*start)(void *arg), void *arg);

#endif
