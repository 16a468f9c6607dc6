/* SPDX-License-Identifier: MIT */
/*
 * Profiles of interpreted code: what its files share. The way of a sample:
 *
 *   count.c    how long which stack of an interpreter ran: spans, or the time
 *              since the last safepoint; on the interpreter's own thread
 *   sample.c   walks the stack, finds the numbers of its locations in table.c,
 *              tells what is new, and puts records into queue.c
 *   output.c   a thread of ours takes them out and gives them to the
 *              builder (collect/encode/builder.h)
 *
 * A session lasts from start to stop and has a number, its epoch. The inline
 * calls look at one word, which is 0 or the epoch. Every thread notes the epoch
 * of its figures, and whatever reaches a session does so under the session's
 * lock after comparing epochs. So a session may start or stop at any moment.
 *
 * Locks, outer first: control (one start or stop at a time), threads (the list
 * of them), session. No callback runs under the session's.
 */
#ifndef VM_VM_H
#define VM_VM_H

#include "arch/atomic.h"
#include "arch/clock.h"
#include "collect/runtime/own_lock.h"
#include <cpprof/vm.h>

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define CPPROF__VM_RUN_LOOPS  16
#define CPPROF__VM_PLUMBING   64
#define CPPROF__VM_COLLECTORS 4

/* Ranges of native code; slots are never taken back. */
struct cpprof__vm_code {
    uintptr_t start, limit;
};

struct cpprof_vm {
    struct cpprof_vm_ops ops;
    char *mapping; /* "[lua]" */
    struct cpprof_vm *next;

    /* Time of threads that are gone, for the next that is charged. */
    uint64_t orphan_ns;

    struct cpprof__vm_code run_loops[CPPROF__VM_RUN_LOOPS];
    struct cpprof__vm_code plumbing[CPPROF__VM_PLUMBING];
    struct cpprof__vm_code collectors[CPPROF__VM_COLLECTORS];
    uint32_t n_run_loops;
    uint32_t n_plumbing;
    uint32_t n_collectors;
};

/* What a thread has run, in one session. */
struct cpprof__vm_clock {
    uint32_t epoch;
    uint64_t begun_ns; /* of the span that runs; 0: none */
    uint64_t span_ns;  /* before, and not charged yet */
};

struct cpprof__vm_thread {
    struct cpprof_vm_thread public;

    /* Fixed. */
    struct cpprof_vm *vm;
    void *thread; /* as ops know it */
    int32_t tid;  /* the native thread whose CPU clock counts; 0: that of
                   * whichever comes to a safepoint */

    /* Guarded by the lock of the list. */
    struct cpprof__vm_thread *next, **at;

    /* Written by whoever runs it. */
    uint32_t is_entered;
    uint32_t was_entered; /* ever */
    bool is_busy;         /* a sample of it is being taken */
    bool is_paused;       /* a span runs, but another thread is entered */
    uintptr_t native;     /* the native thread whose CPU clock begun_ns is of */
    uintptr_t runner;     /* the native thread that entered it; 0: none */
    bool has_moved;       /* entered by one native thread, and not left by the
                           * one before, which may still point here */

    /* Ticks since the last safepoint. */
    uint32_t n_asked;

    /* Written by the thread itself, read by others: two copies of the clock,
     * for even and odd turns. A change is written into the copy that is not
     * current, so that one of them is always consistent. */
    struct cpprof__vm_clock clocks[2];
    uint32_t turn;

    /* Native stacks that wait for a safepoint (deferred_stacks.c). */
    struct cpprof__vm_deferred_stacks *deferred;
    struct cpprof__vm_deferred_stacks *spare;
    void *deferred_block;
    uint32_t is_flushing;
    uint32_t wants_names; /* functions that were peeked at have none yet */

    /* Mode CPU, in the session timed_epoch; timers.h. */
    struct cpprof__vm_timer *timer; /* that of its native thread; NULL: none */
    uint32_t timed_epoch;
    int32_t entered_in;    /* the native thread that entered it */
    uint64_t slept_cpu_ns; /* of the ticker: cpprof_vm_read_sleep() */

    /* Written at the start of session base_epoch if t was entered then: it has
     * run since base_ns. */
    uint32_t base_epoch;
    uint64_t base_ns;
};

/* About the running session. Threads act on the first word, which is set last;
 * work that was done under an old value is recognized by its epoch. */
extern uint32_t cpprof__vm_active; /* epoch; 0: none */
extern uint32_t cpprof__vm_mode;
extern uint64_t cpprof__vm_quantum_ns;
extern const struct cpprof_vm *cpprof__vm_only;     /* NULL: all */
extern struct cpprof_vm_running cpprof__vm_running; /* what users may read */

/* ---- src/vm/threads.c */

extern struct cpprof__own_lock cpprof__vm_threads_lock;
extern struct cpprof__vm_thread *cpprof__vm_threads; /* guarded by it */

/* Take the time that threads left which are gone, of all interpreters. */
uint64_t
cpprof__vm_take_orphans(void);

/* All interpreters: the first; only grows at the front. */
struct cpprof_vm *
cpprof__vm_first(void);

/* What the calling native thread entered last, NULL: nothing; */
extern __thread struct cpprof_vm_thread *cpprof__vm_current;
/* ... if no other native thread has entered it since; NULL: none. */
struct cpprof_vm_thread *
cpprof__vm_entered(void);

static inline struct cpprof__vm_thread *
cpprof__vm_inside(struct cpprof_vm_thread *t)
{
    return (struct cpprof__vm_thread *)t;
}

/* The current clock of t. Only the thread that runs t may call this, or any
 * where none does. */
static inline const struct cpprof__vm_clock *
cpprof__vm_clock_of(const struct cpprof__vm_thread *t)
{
    return &t->clocks[t->turn % 2];
}

#endif
