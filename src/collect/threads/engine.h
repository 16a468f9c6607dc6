/* SPDX-License-Identifier: MIT */
/*
 * The engines that make ticks; see docs/cpu.md. Each thread has a timer, and
 * with the engine of perf events an event, too.
 */
#ifndef COLLECT_ENGINE_H
#define COLLECT_ENGINE_H

#include "arch/clock.h"
#include "collect/signal/tables/thread.h"
#include <cpprof/cpprof.h>

struct cpprof__engine {
    const char *name;

    /* Can it be used here, at that rate? Sets up what is shared. */
    enum cpprof_status (*open)(uint64_t period_ns, struct cpprof_error *error);
};

extern const struct cpprof__engine cpprof__engine_timer;
extern const struct cpprof__engine cpprof__engine_perf;

/* Tick t from now on; its tid, phase_ns and base_ns are set. Any thread may do
 * that for any other. */
void
cpprof__timer_arm(struct cpprof__thread *t, uint64_t period_ns);
void
cpprof__timer_disarm(struct cpprof__thread *t);

/* A timer of the kernel on that clock, whose signal brings value to the thread;
 * first at a reading of the clock. 0 or an errno. Safety: AS. */
int
cpprof__timer_start(int32_t tid, uint64_t value, uint64_t at_ns,
                    uint64_t period_ns, int32_t *timer_id);

/* Are more than half of the signals that may be queued timers of threads, or
 * would be with so many more? */
bool
cpprof__timers_are_many(uint64_t more);

/* In a forked child, which has none. */
void
cpprof__timers_in_child(void);

/*
 * The engine for a request, opened. Automatic: the timer. Perf events are only
 * for who asks for them: an interrupt for each sample.
 */
enum cpprof_status
cpprof__engine_choose(enum cpprof_engine wanted, uint32_t rate_hz,
                      const struct cpprof__engine **engine,
                      struct cpprof_error *error);

/*
 * Where the kernel finds no room to queue a perf event's signal it sends SIGIO
 * (fcntl(2), F_SETSIG). So there are none in a process with a low limit on
 * queued signals, or whose user has queued so much of it.
 */
#define CPPROF__PERF_QUEUED_MAX 0.5

/* No thread gets an event any more, until the engine is opened again. */
void
cpprof__perf_refuse(void);

/* The caller has a table of descriptors of its own, in which nothing is: from
 * here on it opens events, and no other thread. */
void
cpprof__perf_own(void);

/* Has the caller's process events? A child of vfork() has none. Safety: AS. */
bool
cpprof__perf_is_here(void);

void
cpprof__perf_in_child(void);

/* Do for a slot's event what is to be done: open, close, let go on. By the
 * owner. */
void
cpprof__perf_tend(struct cpprof__thread *t, uint64_t period_ns);

/* No more ticks of its event. By another thread than the owner: the owner
 * closes it. */
void
cpprof__perf_disarm(struct cpprof__thread *t);

/* The same for a thread that used CPU time without a tick. */
void
cpprof__perf_push(struct cpprof__thread *t, uint64_t period_ns);

#endif
