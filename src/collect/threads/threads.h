/* SPDX-License-Identifier: MIT */
/*
 * Knows the threads of the process and arms each: those that a session finds at
 * its start, those that pthread_create announces, and those that only
 * /proc/self/task shows (made by a bare clone(), or before us).
 */
#ifndef COLLECT_THREADS_H
#define COLLECT_THREADS_H

#include "collect/runtime/birth.h"
#include "collect/threads/engine.h"

#include <pthread.h>

/* The session that threads are armed for. */
struct cpprof__threads_plan {
    const struct cpprof__engine *engine;
    uint64_t period_ns;
    uint32_t generation;
    const struct cpprof__birth *birth; /* time counts from there, or NULL */
};

/* Arm every thread that there is now, except our own. From here on new ones
 * are armed too. */
void
cpprof__threads_begin(const struct cpprof__threads_plan *plan);
/* Disarm all. */
void
cpprof__threads_end(void);

/*
 * Look at /proc/self/task: arm what is new, forget what is gone, re-arm what
 * lost its descriptor, learn the stacks of threads that were sampled, and
 * charge CPU time that comes without a tick. Cheap when the number of
 * threads is as expected and full is false.
 */
void
cpprof__threads_scan(bool full);

/* Threads ever armed in this session. */
uint32_t
cpprof__threads_seen(void);

/* Threads that are armed now. */
uint32_t
cpprof__threads_armed(void);

/* A slot for a thread about to be created, or NULL when there is no session
 * or no room; give it back with cancel if the thread is not created. */
struct cpprof__thread *
cpprof__thread_announce(uintptr_t start, void *arg, size_t stack_bytes);
void
cpprof__thread_cancel(struct cpprof__thread *t);

/* The first call of a new thread, which was announced or was created while
 * there was no session. labels: a reference to its label set, which becomes the
 * thread's. */
void
cpprof__thread_started(struct cpprof__thread *t);
void
cpprof__thread_creation(uintptr_t start, const void *labels);

/* By the drainer: before anything else, and whenever it was woken. Perf events
 * are in its table of descriptors. */
void
cpprof__threads_begin_events(void);
void
cpprof__threads_tend_events(void);

/* No thread has a perf event from here on: signals can hardly be queued. */
void
cpprof__threads_leave_perf(void);

/* No thread has a timer or an event, and the caller gets no question, from here
 * on: its system calls are about to be led elsewhere. Safety: AS. */
void
cpprof__threads_leave_signals(void);

/* fork: hold the table still, let go, and start over in the child. */
void
cpprof__threads_in_child(void);

#endif
