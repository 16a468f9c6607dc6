/* SPDX-License-Identifier: MIT */
/*
 * Where the stacks of threads are, so that the unwinder can read them directly.
 * A stack that is not known is read through the kernel, which is right as well
 * and costs microseconds.
 */
#ifndef COLLECT_STACKS_H
#define COLLECT_STACKS_H

#include "collect/signal/tables/thread.h"

#include <stddef.h>

/* The calling, new thread's stack, of which pthread_create was asked for
 * stack_bytes. */
void
cpprof__stack_of_new_thread(struct cpprof__thread *t, size_t stack_bytes);

/* Note where the calling thread's stack is, as if it had been sampled, so that
 * it is learnt before its first sample. */
void
cpprof__stack_note_own(void);

/* Look in /proc/self/maps for the stacks of threads that were sampled outside
 * what is known of them. */
void
cpprof__stacks_learn(void);

#endif
