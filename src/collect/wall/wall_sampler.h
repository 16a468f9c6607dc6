/* SPDX-License-Identifier: MIT */
/*
 * The threads that a wall profile looks at, and what it learns of each.
 *
 * A look reads the thread's CPU clock. If the clock stood still since the last
 * look, the thread slept all the time and has the same stack. Else its stack is
 * read from outside if it sleeps (dump/blocked_thread.h), and if it runs it is
 * asked for it (signal/sample/dump.h) and charged when the answer comes. What
 * is charged is the time since the last look, from the start of the profile to
 * its end, and for a thread that is new what a look stands for; the time after
 * the last look of a thread that ends is nobody's, which makes up for that on
 * average. A thread that lives at the end is charged for all its time, even if
 * it had no turn.
 *
 * A tick looks at some threads in turn, so that its cost is bounded. Which
 * ones, and when, does not depend on what they do.
 */
#ifndef COLLECT_WALL_SAMPLER_H
#define COLLECT_WALL_SAMPLER_H

#include "collect/wall/wall_counts.h"

#include <stddef.h>

struct cpprof__wall_thread;

struct cpprof__wall_sampler {
    /* Set before the first tick. */
    uint64_t period_ns;
    uint32_t max_looks; /* in a tick */
    uint64_t start_ns;  /* CLOCK_MONOTONIC: the time of the first threads begins
                           there */

    struct cpprof__wall_thread *threads; /* by tid */
    size_t n;
    int32_t last_tid; /* looked at */
    uint32_t n_slots; /* of signal/sample/dump.h, that were ever in use */
    uint32_t *free_slots;
    uint32_t n_free_slots;

    size_t n_open;  /* questions */
    size_t n_quiet; /* looks in a row at threads that had not run */

    /* When the list of threads was made, what it took of the ticker's CPU
     * clock, and of what. */
    uint64_t counted_ns;
    uint64_t all_listed_ns;
    uint64_t new_ns; /* the last two times it was made: a new thread started
                        between them */
    uint64_t listed_ns;
    uint64_t list_cost_ns;
    uint32_t listed_changes;

    struct cpprof__wall_counts counts;
    uint32_t n_threads_max;
    uint64_t n_looks;
    uint64_t n_asked;
};

/* One tick. */
void
cpprof__wall_sampler_tick(struct cpprof__wall_sampler *sampler);

/* Take the answers that came. */
void
cpprof__wall_sampler_answers(struct cpprof__wall_sampler *sampler);

/* Charge the time since the last looks, because a capture begins or ends now.
 * now: CLOCK_MONOTONIC. */
void
cpprof__wall_sampler_charge(struct cpprof__wall_sampler *sampler, uint64_t now);

/* The end: likewise, and threads that have not answered are charged without an
 * answer. */
void
cpprof__wall_sampler_end(struct cpprof__wall_sampler *sampler, uint64_t now);

void
cpprof__wall_sampler_free(struct cpprof__wall_sampler *sampler);

#endif
