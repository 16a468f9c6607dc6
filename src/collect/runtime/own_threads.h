/* SPDX-License-Identifier: MIT */
/*
 * The profiler's own threads, which are in no profile: each says so itself when
 * it starts and when it ends.
 *
 * libc ends a process by exit(0) when its last thread ends. Threads of ours
 * must not keep it from that: once the main thread is gone and none but them
 * are left, they end, too, and what they had to do at the end is left to the
 * destructor, which then runs on the last of them.
 */
#ifndef COLLECT_OWN_THREADS_H
#define COLLECT_OWN_THREADS_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* The signals that the program blocked where it had us start a thread. */
void
cpprof__own_threads_mask(const sigset_t *program);

/*
 * As pthread_create() underneath, for a thread that begins by saying so. The
 * kernel lists it before it can: who has read that list lets them settle, and
 * only then asks which are ours.
 */
int
cpprof__own_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                           void *(*start)(void *), void *arg);
void
cpprof__own_threads_wait_named(void);

/* The calling thread, at its beginning and as the last that it does: if the
 * main thread is gone, exit handlers of the program may run on this one, with
 * its signals, and in the heap profile. Safety: MT. */
void
cpprof__own_thread_begin(void);
void
cpprof__own_thread_end(void);

/* Run f on a thread of ours, with a stack for libdw, and wait for it; on the
 * caller when that is one already, or there can be no other. Safety: MT. */
void
cpprof__own_thread_run(void (*f)(void *arg), void *arg);

/* Has the main thread ended, and are none left but our own? Looks once a
 * second for each thread that asks, which then has to end. */
bool
cpprof__own_threads_are_alone(void);

/* pthread_join() of one of ours. *was_alone, set where the call above said yes:
 * exit() may be running on it, and may be waiting for who joins it here. */
void
cpprof__own_thread_join(pthread_t thread, const uint32_t *was_alone);

/* runs: but not one that has said that it ends. */
bool
cpprof__is_own_thread(int32_t tid);
bool
cpprof__own_thread_runs(int32_t tid);

/* How many there are. */
uint32_t
cpprof__own_threads(void);

/* CPU time of the process without what cpprof__own_thread_run() took until it
 * returned. */
uint64_t
cpprof__program_cpu_ns(void);

/* In a forked child: none. */
void
cpprof__own_threads_fork_child(void);

#endif
