/* SPDX-License-Identifier: MIT */
/*
 * Waiting threads: what the hooks of src/interpose and the calls of
 * <cpprof/profiles.h> do around a wait, and when a lock is given up.
 *
 * block: a wait of d nanoseconds is recorded with the probability
 * p = min(1, d / rate), and stands for 1 / p waits of d: so the sums are right
 * whatever the lengths are. mutex: of the times that a lock was given up for
 * which others waited one in n is recorded, and stands for n; its delay is what
 * all of them have waited for since the last time (wait_table.h). Weights are
 * applied when a wait is recorded, so the rates may change at any time.
 *
 * What is in progress is known to its own thread, for whoever looks at its
 * stack from a handler.
 *
 * Source: Go runtime/mprof.go (blockevent, mutexevent, saveblockevent).
 */
#ifndef COLLECT_SIGNAL_WAITS_H
#define COLLECT_SIGNAL_WAITS_H

#include "arch/atomic.h"
#include "collect/signal/wait_table.h"

#include <stdbool.h>
#include <stdint.h>

enum cpprof__wait_kind {
    CPPROF__WAITS_NOT,
    CPPROF__WAITS_MUTEX_LOCK,
    CPPROF__WAITS_READ_LOCK,
    CPPROF__WAITS_WRITE_LOCK,
    CPPROF__WAITS_OTHER_LOCK, /* cpprof_wait_begin() */
    /* What follows is held by nobody. */
    CPPROF__WAITS_CONDITION,
    CPPROF__WAITS_SEMAPHORE,
    CPPROF__WAITS_BARRIER,
    CPPROF__WAITS_JOIN,
};

/* A wait in progress, while a profile of waits is on. */
struct cpprof__wait_now {
    uint32_t kind;     /* enum cpprof__wait_kind; NOT: the rest means nothing */
    const void *lock;  /* what is waited for; of a join: the pthread_t */
    uint64_t start_ns; /* CLOCK_MONOTONIC */
};

/* Of the running thread. A handler in the same thread may read .now at any
 * time: of nested waits (in a handler) it is the innermost. */
struct cpprof__wait_self {
    struct cpprof__wait_now now;
    uint64_t random; /* 0: not seeded */
};

#define CPPROF__WAITS_BLOCK 1u
#define CPPROF__WAITS_MUTEX 2u

#pragma GCC visibility push(hidden)
extern __thread struct cpprof__wait_self cpprof__wait_self;

/* Which of both is on. */
extern uint32_t cpprof__waits_on;

/* Called after it changed; NULL: nobody asked. Safety of what it calls: AS. */
extern void (*cpprof__waits_changed)(void);
#pragma GCC visibility pop

static inline bool
cpprof__waits_are_off(void)
{
    return __builtin_expect(load_relaxed(&cpprof__waits_on) == 0, 1);
}

/* A word for the kind, as in a dump: "mutex", "condition". */
const char *
cpprof__wait_kind_name(uint32_t kind);

/* Of one wait; lies in the frame that waits. */
struct cpprof__wait {
    struct cpprof__wait_now outer; /* restored at the end */
    uint64_t start_ns;
    uintptr_t leaf;   /* function that waits, or 0: as hooks are in no stack */
    uint32_t slot;    /* in the table of waiters, or 0 */
    uint32_t is_seen; /* 0: the thread is exempt (collect/exempt.h) */
};

/* Around a wait that is about to begin. Functions between the program's call
 * and these are CPPROF__HOOK. Safety: AS. */
void
cpprof__wait_begin(struct cpprof__wait *wait, enum cpprof__wait_kind kind,
                   const void *lock, const void *leaf);
void
cpprof__wait_end(struct cpprof__wait *wait, enum cpprof__wait_result result);

/*
 * A lock is about to be given up, and cpprof__wait_may_charge(): returns how
 * long others have waited for it. Afterwards, and outside of the lock, that is
 * to be recorded; or taken back, when the lock could not be given up.
 */
uint64_t
cpprof__wait_release(const void *lock);
void
cpprof__wait_released(uint64_t waited_ns, const void *leaf);

/* A wait that is over; leaf, or 0, as above; then skip frames are left out
 * above the first that is no hook's. */
void
cpprof__wait_event(int64_t ns, const void *leaf, unsigned skip);

/* Set, when not negative; returns the one before. Safety: AS. */
int64_t
cpprof__waits_set_block_rate(int64_t ns);
int64_t
cpprof__waits_set_mutex_fraction(int64_t n);

/* In a child made by fork, by the thread that goes on. */
void
cpprof__waits_forked(void);

#endif
