/* SPDX-License-Identifier: MIT */
/* Threads of ours that do something periodically until they are stopped. */
#ifndef COLLECT_PERIODIC_H
#define COLLECT_PERIODIC_H

#include "collect/runtime/own_threads.h"

#include <stdbool.h>
#include <stdint.h>

struct cpprof__periodic {
    /* Set by the owner; all else is zero. */
    const char *name;
    void (*turn)(struct cpprof__periodic *p);
    uint64_t period_ns;
    uint32_t n_periods; /* that are one now, as turn() may set it; 0: 1 */
    uint32_t *wake; /* a futex: 1 ends a pause; its turn clears it; or NULL */
    unsigned flags; /* of its thread */
    void (*lost)(void);

    struct cpprof__own_thread thread;
    uint32_t finish;  /* 1: no more turns, as turn() may set it */
    uint32_t no_wake; /* what wake is when nobody else does it */
    uint64_t random;
};

/* 0 or an errno. */
int
cpprof__periodic_start(struct cpprof__periodic *p);
/* Wait for its end, which comes after the turn that it is in. */
void
cpprof__periodic_stop(struct cpprof__periodic *p);

#endif
