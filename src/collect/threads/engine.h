/* SPDX-License-Identifier: MIT */
/*
 * The engines that make ticks; see docs/cpu.md. An engine arms one thread at a
 * time; any thread of the process may arm any other.
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
    /* Tick t from now on; 0 or an errno. t->tid, phase_ns and base_ns are
     * set. */
    int (*arm)(struct cpprof__thread *t, uint64_t period_ns);
    /* Is t still armed? A program may close descriptors that are not its
     * own. */
    bool (*is_armed)(const struct cpprof__thread *t);
    /* No more ticks for t, and everything it held is given back. */
    void (*disarm)(struct cpprof__thread *t);
    void (*close)(void);
};

extern const struct cpprof__engine cpprof__engine_timer;
extern const struct cpprof__engine cpprof__engine_perf;

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
 * for who asks for them, because their signals may cut a sleep short.
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

/* Is that the caller? */
bool
cpprof__perf_is_owner(void);

/* A slot's event, if it has one, ticks no more until it is tended. By the
 * owner. */
void
cpprof__perf_hold(struct cpprof__thread *t);

/* From here on until it is allowed no event gets credit. False: the caller is
 * in a process that has no events, as a child made by vfork(). Safety: AS. */
bool
cpprof__perf_forbid(void);
void
cpprof__perf_allow(void);
bool
cpprof__perf_is_forbidden(void);

/* While it is forbidden: no event of that thread ticks, nor will. Safety: AS.
 */
bool
cpprof__perf_is_still(int32_t tid);

/* If not: is that because the owner is at work? Else the thread can wait for
 * it by using CPU time, this much at most if no tick is late. */
bool
cpprof__perf_is_granting(void);
uint64_t
cpprof__perf_credit_ns(uint64_t period_ns);

void
cpprof__perf_in_child(void);

/* Do for a slot's event what is to be done: open, close, let go on; while it is
 * forbidden, hold. A thread that cannot have one keeps its timer. By the owner.
 */
void
cpprof__perf_tend(struct cpprof__thread *t, uint64_t period_ns);

/* The same for a thread that used CPU time without a tick. */
void
cpprof__perf_push(struct cpprof__thread *t, uint64_t period_ns);

/* Does perf skip the time in the kernel (perf_event_paranoid 2)? */
bool
cpprof__perf_is_user_only(void);

#endif
