/* SPDX-License-Identifier: MIT */
/*
 * Where threads are, seen from the helper that stops them (stop.c): may each of
 * them be stopped, and no call of it be cut short? It uses system calls only.
 *
 * All threads are looked at several times. A thread that sleeps must do so in a
 * call that bears a stop. One that waits for a processor may do so within a
 * call that must not be cut short, for as long as the machine is busy, and each
 * look finds that it could run. So where it is not seen asleep, it must have
 * run since the first look; and if it slept meanwhile, a look must have seen
 * where.
 */
#ifndef COLLECT_LEAK_LOOKS_H
#define COLLECT_LEAK_LOOKS_H

#include "collect/leak/shared.h"

#include <stdbool.h>
#include <stdint.h>

/* What looks have seen of a thread since all were good for the first time. */
struct cpprof__seen {
    int32_t tid;
    bool runs;       /* in the last look; or it waits for a processor */
    bool was_there;  /* a look saw where it sleeps */
    bool has_slept;  /* since it was first seen running */
    uint32_t n_runs; /* from look to look */
    bool has_counts;
    uint64_t ran_ns;   /* of the last look */
    uint64_t n_sleeps; /* of the last look that saw it running */
};

struct cpprof__looks {
    int tasks; /* /proc/self/task */
    int pidfd; /* of the process */
    struct cpprof__seen seen[CPPROF__LEAK_THREADS];
    uint32_t n_seen;
    uint32_t next_seen; /* the list has its order */
    int32_t unsure_tid; /* one of which more must be seen; or 0 */
};

/* A look at all threads begins; anew: what was seen before is nothing. */
void
cpprof__looks_begin(struct cpprof__looks *looks, bool anew);

/* False: it must not be stopped. */
bool
cpprof__look_at(struct cpprof__looks *looks, int32_t tid);

/* The same, after the last look, of one that is about to be stopped. */
bool
cpprof__look_bears_stop(struct cpprof__looks *looks, int32_t tid);

/* A main thread that has ended stays in the list. */
bool
cpprof__look_has_ended(const struct cpprof__looks *looks, int32_t tid);

/* The decimal number at the beginning of a text. */
int32_t
cpprof__look_number(const char *text);

#endif
