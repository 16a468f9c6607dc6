/* SPDX-License-Identifier: MIT */
/*
 * Which stack created which thread: a slot for each thread that pthread_create
 * or thrd_create made, from before it starts until after it has ended. And the
 * profile threadcreate, of the threads that live.
 */
#ifndef COLLECT_THREAD_CREATION_H
#define COLLECT_THREAD_CREATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpprof__thread_creation;
struct cpprof__thread_self;

/* ---- for who creates threads ------------------------------------------ */

/* The caller is about to create a thread with that start routine. The stack
 * begins with the caller of the calling CPPROF__HOOK. NULL: no room. */
struct cpprof__thread_creation *
cpprof__thread_creation_announce(uintptr_t start);
/* The thread was not created. NULL does nothing. */
void
cpprof__thread_creation_cancel(struct cpprof__thread_creation *creation);
/* Called by the new thread as the first and the last that it does. */
void
cpprof__thread_creation_started(struct cpprof__thread_creation *creation);
void
cpprof__thread_creation_ended(void);

/* ---- for who reads ---------------------------------------------------- */

struct cpprof__creation_info {
    int32_t tid;
    uint32_t stack;  /* node of cpprof__tables.tree; 0: not known */
    uintptr_t start; /* routine */
    const struct cpprof__thread_self *self; /* its own, if it has not ended */
    uint64_t started_ns;                    /* CLOCK_MONOTONIC */
    bool has_ended;
};

/* All known threads by tid, also those that ended lately; from malloc, NULL: no
 * memory. */
struct cpprof__creation_info *
cpprof__creations(size_t *n);
const struct cpprof__creation_info *
cpprof__creation_of(const struct cpprof__creation_info *creations, size_t n,
                    int32_t tid);

/* The threads that live: those that the kernel lists and those that were
 * announced; sorted; from malloc, NULL: no memory. creations may be NULL. */
int32_t *
cpprof__live_threads(const struct cpprof__creation_info *creations,
                     size_t n_creations, size_t *n);

/* Changes whenever a thread starts or ends. */
uint32_t
cpprof__thread_creation_changes(void);

void
cpprof__thread_creation_in_child(void);

#endif
