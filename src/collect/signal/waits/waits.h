/* SPDX-License-Identifier: MIT */
/*
 * Waiting threads: what the hooks of src/interpose and the calls of
 * <cpprof/profiles.h> do around a wait, and when a lock is given up.
 *
 * block: a wait of d nanoseconds is recorded with the probability p = min(1, d
 * / rate), and stands for 1 / p waits of d: so the sums are right whatever the
 * lengths are. mutex: one wait in n is followed, and stands for n; the others
 * cost whoever gives the lock up nothing at all. Who gives it up is charged
 * what all that are followed have waited, from the time before until one of
 * them has the lock (wait_table.h). Weights are applied when something is
 * recorded, so the rates may change at any time.
 *
 * A thread knows its waits in progress, for handlers that look at its stack.
 *
 * Source: Go runtime/mprof.go (blockevent, mutexevent, saveblockevent).
 */
#ifndef COLLECT_SIGNAL_WAITS_H
#define COLLECT_SIGNAL_WAITS_H

#include "arch/atomic.h"
#include "collect/signal/waits/wait_table.h"

#include <stdbool.h>
#include <stdint.h>

enum cpprof__wait_kind {
    CPPROF__WAITS_NOT,
    CPPROF__WAITS_MUTEX_LOCK,
    CPPROF__WAITS_READ_LOCK,
    CPPROF__WAITS_WRITE_LOCK,
    CPPROF__WAITS_OTHER_LOCK, /* cpprof_wait_begin() */
    /* No thread holds what the following wait for. */
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
    uintptr_t leaf;    /* the function that waits, or 0 */
};

/* Is a noted wait still true, given whether a hook is in the thread's stack?
 * Except for the program's own waits only hooks wait, and a wait that was left
 * by siglongjmp may still be noted. */
static inline bool
cpprof__wait_is_true(uint32_t kind, bool has_hook)
{
    return kind == CPPROF__WAITS_OTHER_LOCK || has_hook;
}

/* Waits of one thread: more than one when a handler waits that interrupted a
 * wait, or when a program's own wait is made of others. */
#define CPPROF__WAITS_NESTED 8u

/*
 * A wait that has not ended. A thread that leaves it by siglongjmp, or is
 * cancelled in it, does not end it, unless the call is a cancellation point.
 * That is found out when the thread waits again, releases a lock that others
 * wait for, or ends.
 */
struct cpprof__wait_entry {
    struct cpprof__wait_now now;
    uintptr_t frame;  /* what is called from there is below; 0: nothing yet, or
                       * no more */
    const void *wait; /* the wait, whose memory may be used again */
    uint32_t slot;    /* in a table of waiters, or 0 */
    uint32_t serial;  /* the same as in the wait */
};

/* The waits of a thread. A wait touches one cache line of it. */
struct cpprof__wait_self {
    uint32_t n; /* entries in use, the outermost first */
    uint32_t serial;
    int32_t tid;     /* whose waits these are; 0: nobody's */
    uint32_t number; /* of its place among those of all threads */
    struct cpprof__wait_entry entries[CPPROF__WAITS_NESTED];
} __attribute__((aligned(64)));

/* The innermost wait of a thread, by its waits or a copy of them; NULL: it has
 * none. A handler in the same thread may ask at any time. */
static inline struct cpprof__wait_now
cpprof__wait_now(const struct cpprof__wait_self *self)
{
    uint32_t n = self ? load_relaxed(&self->n) : 0;

    if (!n || n > CPPROF__WAITS_NESTED)
        return (struct cpprof__wait_now){.kind = CPPROF__WAITS_NOT};
    return self->entries[n - 1].now;
}

#define CPPROF__WAITS_BLOCK 1u
#define CPPROF__WAITS_MUTEX 2u

#pragma GCC visibility push(hidden)
/* The waits of the running thread; NULL: it has not waited yet. */
extern __thread struct cpprof__wait_self *cpprof__wait_own;

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

/*
 * wait_self.c: memory for them, which cpprof__wait_own leads to from then on;
 * false: there is none. Then give it back, at the thread's end. begin() is
 * called before the first of the process, and in a child made by fork.
 *
 * is_mine: is the caller the thread that its thread-local variables are of? A
 * child made by vfork() or a bare clone() is not: it has them in common with
 * the thread that made it, which may be waiting at the same time, and ends
 * without a word. So it takes none, and its waits are not seen. Safety: AS,
 * lock-free.
 */
void
cpprof__wait_self_begin(void);
bool
cpprof__wait_self_is_mine(void);
bool
cpprof__wait_self_take(void);
void
cpprof__wait_self_give(void);

/* One wait. It lies in the frame that waits. */
struct cpprof__wait {
    uint64_t start_ns;
    uintptr_t leaf;   /* function that waits, or 0: as hooks are in no stack */
    uint32_t slot;    /* in the table of waiters, when it has no entry */
    uint32_t serial;  /* of its entry, or 0 */
    uint32_t n_forks; /* that had been when it began */
    uint8_t is_seen;  /* 0: the thread is exempt (collect/runtime/exempt.h), or
                       * its waits are another's */
    uint8_t may_unwind; /* it is on the thread's own stack, which is there when
                         * the thread is cancelled */
    bool is_followed;   /* in a table of waiters */
};

/* Around a wait that is about to begin. Functions between the program's call
 * and these are CPPROF__HOOK. Safety: AS. */
void
cpprof__wait_begin(struct cpprof__wait *wait, enum cpprof__wait_kind kind,
                   const void *lock, const void *leaf);
void
cpprof__wait_end(struct cpprof__wait *wait, enum cpprof__wait_result result);

/* The wait ends because its thread is unwound. A hook calls this from within
 * the call that waits. */
void
cpprof__wait_unwound(struct cpprof__wait *wait);

/* The running thread ends, and with it what it waits for. */
void
cpprof__waits_thread_ended(void);

/*
 * A lock is about to be given up, and cpprof__wait_may_charge(). False: nobody
 * waits for it. Afterwards, and outside of the lock, the charge is to be
 * recorded; or taken back, when the lock could not be given up.
 */
bool
cpprof__wait_release(const void *lock, struct cpprof__wait_charge *charge);
void
cpprof__wait_released(const void *lock, struct cpprof__wait_charge charge,
                      const void *leaf);

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
