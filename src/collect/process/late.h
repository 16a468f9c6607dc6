/* SPDX-License-Identifier: MIT */
/*
 * A process that a profiled one made, by fork or by exec, is sampled once it
 * has lived for a moment: most of them end sooner, and would only pay for it.
 * Until then there is a thread of ours that sleeps, and nothing else. Samplers
 * then count from the beginning of the process.
 */
#ifndef COLLECT_LATE_H
#define COLLECT_LATE_H

#include "collect/runtime/birth.h"

#include <stdbool.h>
#include <stdint.h>

/* start is called after so many nanoseconds, on a thread of ours with those
 * flags (own_threads.h). A process that cannot have another thread is not
 * sampled. */
void
cpprof__late_begin(uint64_t ns, unsigned flags,
                   void (*start)(const struct cpprof__birth *birth));

/* It starts now, if it was to start, and the caller waits for that, a second at
 * most: what it opens cannot be opened later. */
void
cpprof__late_hurry(void);

/* The process ends: what has not started starts no more, and what is starting
 * is waited for, a second at most. Safety: AS. */
void
cpprof__late_end(void);

/* In a child made by fork: nothing is to start. */
void
cpprof__late_in_child(void);

#endif
