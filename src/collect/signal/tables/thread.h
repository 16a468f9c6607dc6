/* SPDX-License-Identifier: MIT */
/*
 * What is known about each thread: a slot in a table that only grows, so that a
 * late signal still finds memory there. Handlers read and use a slot;
 * everything else about the table (taking and giving slots) is done outside
 * handlers under the lock of collect/threads/threads.c.
 */
#ifndef COLLECT_SIGNAL_THREAD_H
#define COLLECT_SIGNAL_THREAD_H

#include "arch/atomic.h"
#include "arch/libc.h"
#include "collect/signal/unwind/unwind.h"

#include <stdbool.h>
#include <stdint.h>

#define CPPROF__MAX_DEPTH         1024
#define CPPROF__THREADS_PER_CHUNK 64
#define CPPROF__MAX_CHUNKS        2048 /* 131 072 threads */

struct cpprof__thread {
    /* Written outside handlers while the slot is not armed. */
    int32_t tid;         /* 0: the slot is free */
    uint32_t index;      /* of this slot in the table, fixed */
    uint32_t next_free;  /* slot + 1, while this one is free */
    uint32_t session;    /* that took the slot */
    uint32_t generation; /* the same, stored with release order when all that
                          * a handler reads is set; a signal of another
                          * session is stale */
    bool is_adopted;     /* to be armed by who found it */
    bool has_timer;
    int32_t timer_id;        /* kernel's id, when has_timer */
    int32_t perf_fd;         /* in the drainer's table; -1: none */
    uint32_t perf_granted;   /* signals that its event may have sent */
    uint32_t perf_wakes_at;  /* with which of them the drainer is woken */
    bool perf_is_over;       /* the drainer has to close it */
    uint64_t phase_ns;       /* CPU time until the first tick, 1 to period */
    uint64_t base_ns;        /* thread CPU time when it was armed */
    uint64_t seen_delivered; /* .delivered at the last scan */
    uintptr_t start;         /* address of the start routine, 0: unknown */
    void *start_arg;         /* for the wrapper that pthread_create starts */
    size_t stack_bytes;      /* as pthread_create was asked for */
    struct cpprof__thread_creation
        *creation;            /* who created it; threads/thread_creation.h */
    const void *start_labels; /* of the creator, held for the new thread */

    /* The stack: readable from stack_lo to stack_hi as long as the thread
     * lives; 0, 0 while not known. */
    uintptr_t stack_lo;
    uintptr_t stack_hi;
    uintptr_t stack_end; /* stack_lo may move down to here, when it is used;
                          * 0: it does not */

    /* Written by the handler, read by the scan. */
    uint32_t busy;         /* a handler is using what is below */
    uint64_t delivered;    /* ticks that came, overruns counted */
    uint32_t perf_signals; /* that came of its event */
    uint64_t missed; /* ticks before the timer was set, for the next signal */
    uint64_t precharged_ticks; /* ticks that the scan already charged because
                                * the thread blocked the signal */
    uintptr_t seen_sp;         /* of the last sample */
    uintptr_t seen_tp;         /* thread pointer, to tell its own stack */

    /* The handler's working memory. */
    struct cpprof__stack_view view;
    uintptr_t pcs[CPPROF__MAX_DEPTH + 2];
};

/* What the running thread knows of itself. */
struct cpprof__thread_self {
    struct cpprof__thread *thread;
    uint32_t generation; /* session for which .thread was found */
    const void *labels;  /* struct cpprof__label_set, immutable */
    uintptr_t start;     /* address of the start routine, 0: unknown */
    void *inherited;     /* the set that it was born with, on which it has a
                          * hold, or NULL */
    int32_t tid; /* set while others may look at this; dump/blocked_thread.h */
};
extern __thread struct cpprof__thread_self cpprof__self;

#define CPPROF__MAX_THREADS (CPPROF__THREADS_PER_CHUNK * CPPROF__MAX_CHUNKS)

/* The table. Chunks are added and never removed. The tids are also kept in an
 * array of their own, which is quick to search. */
extern struct cpprof__thread *cpprof__thread_chunks[CPPROF__MAX_CHUNKS];
extern int32_t cpprof__thread_tids[CPPROF__MAX_THREADS];
extern uint32_t cpprof__n_thread_slots; /* slots that were ever in use */

/* The slot with that index, or NULL. Safety: AS. */
struct cpprof__thread *
cpprof__thread_at(uint32_t index);

/* The slot of a tid, or NULL. Linear in the number of threads, 4 bytes each:
 * for what happens once in a thread's life. Safety: AS. */
struct cpprof__thread *
cpprof__thread_of_tid(int32_t tid);

/* A start routine of ours returns to there: 0, of pthread_create(); 1, of
 * thrd_create(). Safety: AS. */
static inline void
cpprof__thread_begins_at(unsigned how, const void *return_address)
{
    if (!CPPROF__LIBC_HAS_ROWS)
        store_relaxed(&cpprof__outermost.starts[how],
                      (uintptr_t)return_address);
}

#endif
