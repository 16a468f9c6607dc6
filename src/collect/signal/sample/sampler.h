/* SPDX-License-Identifier: MIT */
/*
 * The state that the handler of the sampling signal works on (handler.h).
 *
 * One session at a time. `ring` is what makes the handler sample: it is set
 * last when a session starts and cleared first when it ends, and the one who
 * clears it waits until no handler is inside before it takes the memory away.
 * Once installed, the handler stays: a late signal is recognised and ignored.
 */
#ifndef COLLECT_SIGNAL_SAMPLER_H
#define COLLECT_SIGNAL_SAMPLER_H

#include "arch/clock.h"
#include "collect/signal/sample/ring.h"
#include "collect/signal/tables/own_frames.h"
#include "collect/signal/tables/thread.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* threads/action.h tells why this one. TSan lets handlers run when it can, if
 * they were installed by way of libc. */
#ifdef __SANITIZE_THREAD__
#define CPPROF__SIGNAL SIGPROF
#else
#define CPPROF__SIGNAL 33
#endif

struct cpprof__sampler {
    /* Written by start and stop, read by handlers. */
    struct cpprof__ring *ring; /* NULL: not sampling */
    uint32_t generation;       /* of the session, never 0 */
    uint32_t max_depth;
    uint64_t period_ns;
    bool labels;
    bool uses_perf; /* this or an earlier session did */

    /* For good: a thread has its system calls led to the program's handler of
     * SIGSYS, where the return from a handler of ours would come, too. No
     * signal is sent to any thread from here on. */
    uint32_t is_refused;

    /* Written by handlers. */
    uint32_t n_inside;
};
extern struct cpprof__sampler cpprof__sampler;

/* May no thread get a signal of ours any more? Safety: AS. */
static inline bool
cpprof__sampler_is_refused(void)
{
    return __atomic_load_n(&cpprof__sampler.is_refused, __ATOMIC_SEQ_CST);
}

/*
 * The value that our timers carry: 24 bits that recognise them, 16 bits of the
 * session and 24 bits of the thread's slot, so that a signal that was pending
 * since an earlier session is told from one of this.
 */
#define CPPROF__TIMER_MAGIC 0x637066ull /* "cpf" */

static inline uint64_t
cpprof__timer_value(const struct cpprof__thread *t)
{
    return CPPROF__TIMER_MAGIC << 40 | (uint64_t)(uint16_t)t->generation << 24 |
           t->index;
}

/* Timers of src/vm carry values that begin with this one, questions of
 * sample/dump.h with the other. */
#define CPPROF__SCRIPT_MAGIC   0x637076ull /* "cpv" */
#define CPPROF__QUESTION_MAGIC 0x637064ull /* "cpd" */

enum cpprof__signal_source {
    CPPROF__FROM_TIMER,
    CPPROF__FROM_PERF,
    CPPROF__FROM_SCRIPT,
    CPPROF__FROM_QUESTION,
    CPPROF__FROM_OTHERS, /* libc, or kill(1) */
};

/* Where a sampling signal came from. Safety: AS. */
enum cpprof__signal_source
cpprof__signal_source(const siginfo_t *info);

/* Why the handler may not walk: the frame that says so, or 0. An alternate
 * stack of the program may be small, and it holds a frame of the kernel
 * already, of up to 4 KiB. And a walk may have to make a system call. A filter
 * may have the program's handler of SIGSYS answer that, and while that handler
 * runs the signal is blocked: then the kernel ends the process. So does any
 * handler of Go's, which block all signals. If one is at its first instruction,
 * because its signal came with ours, *context becomes that of the code which
 * both have interrupted, and SIGSYS is as blocked as it was there. Safety: AS.
 */
enum cpprof__own_frame
cpprof__signal_no_walk(const void **context);

/* The calling thread's labels, if samples have any. Safety: AS. */
uintptr_t
cpprof__sampler_labels(void);

/* Into the ring, and wake the drainer if that fills it. Safety: AS. */
void
cpprof__sampler_push(struct cpprof__ring *ring,
                     const struct cpprof__ring_head *head, const uintptr_t *pcs,
                     size_t n);

/* The weight of a record, of so many ticks. */
static inline uint32_t
cpprof__sampler_weight(uint64_t ticks)
{
    return ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX;
}

/*
 * Charge `weight` ticks of this session to a made-up stack of a thread: one
 * frame of our own over its start routine. Safety: AS.
 */
void
cpprof__sampler_charge(const struct cpprof__thread *t, uint32_t weight,
                       uintptr_t own_frame);

/* Ticks that are due to a thread that has used cpu_ns of CPU time. */
uint64_t
cpprof__ticks_due(const struct cpprof__thread *t, uint64_t cpu_ns,
                  uint64_t period_ns);

/* Wake the drainer. Safety: AS. */
void
cpprof__ring_wake(struct cpprof__ring *ring);

#endif
