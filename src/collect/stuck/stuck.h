/* SPDX-License-Identifier: MIT */
/*
 * Threads that can never go on.
 *
 * A look reads of each sleeping thread what it waits for (waits_for.h) and who
 * holds that. Each thread waits for one other at most, so a cycle is found by
 * following. What one look finds may be of many moments. So there is a second
 * one, and only what is the same in both counts: each thread of it waits for
 * the same, held by the same, and its CPU clock stood still all the while. Then
 * there was a moment between both at which all of it was true at once.
 *
 * A thread that has not run since the look before is not read again: most
 * threads of most programs cost one reading of a clock.
 */
#ifndef COLLECT_STUCK_H
#define COLLECT_STUCK_H

#include "collect/stuck/waits_for.h"
#include <cpprof/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ORDER: names in stuck_text.c */
enum cpprof__stuck_verdict {
    CPPROF__STUCK_NOT,
    CPPROF__STUCK_CYCLE,  /* it waits for itself, by way of others */
    CPPROF__STUCK_ENDED,  /* who holds the lock has ended; or the kernel has
                           * refused it */
    CPPROF__STUCK_BEHIND, /* it waits for one of those */
    CPPROF__STUCK_OLD,    /* a suspicion: for long, and nobody touched it */
};

struct cpprof__stuck_thread {
    int32_t tid;
    enum cpprof__stuck_verdict verdict;
    uint32_t cycle; /* its number, from 1 on */
    struct cpprof__waits_for wait;
    uint32_t holder_at;  /* its index among the threads; or UINT32_MAX */
    bool is_holder_gone; /* it has ended */
    bool is_zombie;      /* it has ended itself: the first thread stays */
    bool is_read;        /* what follows and the wait are those at cpu_ns */
    bool is_true;        /* the stack says so, too: otherwise a guess */
    uint64_t cpu_ns;     /* its clock */
    uint64_t since_ns;   /* of a wait: in CLOCK_MONOTONIC; 0: not known */
    uint32_t stack;      /* node of cpprof__tables.tree, or 0: not looked at */
    uint32_t labels;     /* cpprof__label_set_number(), or 0 */
    char comm[17];       /* of those with a verdict, and whom they wait for */
};

struct cpprof__stuck {
    struct cpprof__stuck_thread *threads; /* by tid */
    size_t n;
    size_t n_stuck; /* that have a verdict */
    size_t n_cycles;
    bool is_in_loader;  /* a thread that is stuck */
    uint64_t now_ns;    /* CLOCK_MONOTONIC */
    uint64_t listed_at; /* tells whether there are others since; or 0 */
};

/* Also suspicions: of waits older than CPPROF__STUCK_OLD_NS. Costs more. */
enum cpprof__stuck_wanted { CPPROF__STUCK_PROVEN, CPPROF__STUCK_ALL };

/* Tunable: a wait for a lock or a semaphore is suspicious after that time. */
#define CPPROF__STUCK_OLD_NS (300 * UINT64_C(1000000000))

#pragma GCC visibility push(hidden)
/* For tests: what it is. */
extern uint64_t cpprof__stuck_old_ns;
#pragma GCC visibility pop

/*
 * Look twice, and say who is stuck. before: of an earlier call, whose readings
 * are used where they are still true; or NULL. Takes some 20 ms if the first
 * look finds anything, and nothing else waits meanwhile.
 *
 * Errors: CPPROF_NOMEM, CPPROF_UNSUPPORTED: threads cannot be read, with why.
 */
enum cpprof_status
cpprof__stuck_find(enum cpprof__stuck_wanted wanted,
                   const struct cpprof__stuck *before,
                   struct cpprof__stuck *stuck, struct cpprof_error *error);

/* The thread with that tid among them, or NULL. */
struct cpprof__stuck_thread *
cpprof__stuck_thread_of(const struct cpprof__stuck *stuck, int32_t tid);

void
cpprof__stuck_free(struct cpprof__stuck *stuck);

/* In a child made by fork. */
void
cpprof__stuck_in_child(void);

#endif
