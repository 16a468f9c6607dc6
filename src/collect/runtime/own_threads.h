/* SPDX-License-Identifier: MIT */
/*
 * Threads of the profiler's own. All of them are started here, so that each
 * has what a guest in another's process owes it:
 *
 *   - it blocks all signals, which are the program's (but see
 *     cpprof__block_signals());
 *   - with CPPROF__OWN_TABLE it has a table of descriptors of its own, in which
 *     nothing is but /dev/null as 0 to 2: what it opens and closes does not
 *     shift the program's numbers, a program that closes all it has takes
 *     nothing away, and no file of the program's is kept open. So it opens what
 *     it needs itself, and calls no writer of the program's. A keeper beside
 *     them holds the program's table, for exit handlers (keeper.h); where none
 *     can be made the table is the program's;
 *   - it is known as ours, is in no profile, and what it allocates is in none;
 *   - it does not outlive the program: libc ends a process by exit(0) when its
 *     last thread ends. Once the main thread is gone and none but ours are
 *     left, they end, too, and what they had to do at the end is left to the
 *     destructor, which then runs on the last of them;
 *   - it is not there when the program changes its credentials
 *     (cpprof__own_threads_pause()).
 *
 * So each but the keeper waits for a limited time only, and asks
 * cpprof__own_thread_must_leave() when it has waited.
 */
#ifndef COLLECT_OWN_THREADS_H
#define COLLECT_OWN_THREADS_H

#include "collect/runtime/own_list.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

enum { CPPROF__OWN_TABLE = 1 };

/* Bytes of their stacks: for libdw, which recurses over DIEs; touched as far as
 * they are used. */
#define CPPROF__OWN_STACK (1024u * 1024)

/* A thread with an owner, who keeps this until it has joined the thread. */
struct cpprof__own_thread {
    /* Set by the owner. */
    const char *name;       /* as the kernel shows it, 15 bytes */
    bool (*run)(void *arg); /* true: to be called again after a pause */
    void *arg;
    uint32_t *wake; /* the futex that it sleeps on; or NULL */
    unsigned flags;
    void (*lost)(void); /* on a thread of the program, its signals blocked: this
                         * one cannot begin again after a pause; or NULL */

    /* Of own_threads.c. */
    pthread_t thread; /* as it says itself */
    uint32_t is_over; /* futex: it has done all it had to */
    bool is_alone;    /* and exit handlers may run on it now */
    bool is_detached;
    bool is_joined; /* while it is paused */
    struct cpprof__own_thread *next_paused;
};

/* At the first use. */
void
cpprof__own_threads_learn(void);

/* 0 or an errno. Safety: MT. */
int
cpprof__own_thread_start(struct cpprof__own_thread *t);

/* Wait for its end, until a moment of CLOCK_MONOTONIC: false if it has not come
 * by then. A thread does not wait for itself: it is told that it has been
 * joined, and looks at this no more. */
bool
cpprof__own_thread_join(struct cpprof__own_thread *t, uint64_t until_ns);

/* One that nobody waits for: the rest is as above. 0 or an errno. Safety: MT.
 */
int
cpprof__own_thread_start_detached(const struct cpprof__own_thread *what);

/* The same, of no name and no futex. */
static inline int
cpprof__own_thread_detached(bool (*run)(void *arg), void *arg, unsigned flags)
{
    const struct cpprof__own_thread t = {
        .name = "cpprof", .run = run, .arg = arg, .flags = flags};

    return cpprof__own_thread_start_detached(&t);
}

/* Has the calling thread, one of ours, a table of descriptors of its own? */
bool
cpprof__own_thread_has_table(void);

/* A thread with a table of its own has the keeper run f, and does not wait;
 * false: the caller has none. Safety: MT. */
bool
cpprof__own_keeper_run(void (*f)(void));

/* Write to the program's standard error, from any thread. One with a table of
 * its own has a copy of that descriptor for so long, of the main thread's;
 * after the end of that, or where the kernel refuses a copy, the keeper writes.
 * Safety: MT. */
void
cpprof__own_thread_say(const char *line, size_t n);

/* Run f on one in the caller's stead, with a stack for libdw, and wait for it;
 * on the caller when that is one already, or there can be no other. Safety:
 * MT. */
void
cpprof__own_thread_run(void (*f)(void *arg), void *arg);

/* The same, on a thread that is made for it, with flags as above; false: there
 * can be none. */
bool
cpprof__own_thread_run_new(void (*f)(void *arg), void *arg, unsigned flags);

/* As pthread_create(): a library that one of them uses makes a thread, which is
 * ours, too, and shares that one's descriptors. */
int
cpprof__own_thread_create(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*start)(void *arg), void *arg);

/* For threads that others make for us: the calling thread, at its beginning and
 * as the last that it does. Safety: MT. */
void
cpprof__own_thread_begin(void);
void
cpprof__own_thread_end(void);

/* Tunable. A thread that sleeps wakes so often to ask, which takes some 10 us.
 * A program whose last thread ends by a bare system call ends so much later,
 * and a thread that outlives its main thread for less is not seen. */
#define CPPROF__OWN_LOOK_NS 100000000u

/* Has the calling thread to return from its run() now? Because only threads of
 * ours are left; or because it pauses. */
bool
cpprof__own_thread_must_leave(void);
/* The two reasons by themselves. A pause may end at any time: who returns for
 * one returns true, whatever this says by then. */
bool
cpprof__own_threads_are_alone(void);
bool
cpprof__own_threads_pause_now(void);

/* The caller is the only thread of a process that libc did not make, by the
 * bare clone() or by vfork(): what there is of our threads is the parent's. */
bool
cpprof__own_threads_are_parents(void);

/* The same, of any process that has the parent's memory or a copy of it.
 * Nothing of the thread's storage is touched, as there may be none. */
bool
cpprof__own_threads_are_anothers(void);

/*
 * Around a change of the process's credentials. libc makes that change in every
 * thread, and aborts the process where it fails in one and not in another; and
 * threads of ours may lack a capability that the program has kept. So they end
 * before, and begin again after, as what the program has become. Who does not
 * leave within a second is left as it is.
 *
 * wake: called again and again meanwhile, for threads that do not sleep on a
 * futex; or NULL.
 *
 * False: there is none to resume. Safety: MT.
 */
bool
cpprof__own_threads_pause(void (*wake)(void));
void
cpprof__own_threads_resume(void);

/* ---- who is one ------------------------------------------------------- */

/* The calling thread. Safety: AS. */
bool
cpprof__own_thread_is_this(void);

/* CPU time of the process without what cpprof__own_thread_run() took until it
 * returned. */
uint64_t
cpprof__program_cpu_ns(void);

/* In a forked child: none. */
void
cpprof__own_threads_in_child(void);

#endif
