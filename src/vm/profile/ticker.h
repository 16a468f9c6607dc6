/* SPDX-License-Identifier: MIT */
/*
 * Own threads that do something periodically until they are stopped; and the
 * one that asks interpreters for samples.
 */
#ifndef VM_TICKER_H
#define VM_TICKER_H

#include "collect/runtime/own_threads.h"

#include <stdbool.h>
#include <stdint.h>

struct cpprof__vm_worker {
    struct cpprof__own_thread thread;
    const char *name;
    void (*turn)(struct cpprof__vm_worker *worker);
    uint64_t period_ns;
    uint32_t *wake; /* a futex: 1 ends a pause; its turn clears it */
    uint32_t finish;
    uint32_t no_wake; /* what wake is when nobody else does it */
    uint64_t random;
};

/* 0 or an errno. */
int
cpprof__vm_worker_start(struct cpprof__vm_worker *worker);
/* Wait for its end. */
void
cpprof__vm_worker_stop(struct cpprof__vm_worker *worker);

/* A turn: have all that run come to a safepoint. worker is NULL at the start
 * of a session in mode SPAN, where interpreters are told of it. */
void
cpprof__vm_tick(struct cpprof__vm_worker *worker);

#endif
