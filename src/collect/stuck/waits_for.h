/* SPDX-License-Identifier: MIT */
/*
 * What a sleeping thread waits for, and who can let it go on, read from outside
 * without a hook: the kernel tells the futex that it sleeps on, the stack tells
 * in which function of libc, and the lock itself tells who holds it.
 *
 *   mutex          its owner's tid is in it; robust and PI mutexes have it in
 *                  the futex
 *   rwlock         its writer's tid is in it; readers are not known
 *   pthread_join   the futex is the tid in the other thread's descriptor, which
 *                  the kernel knows by its list of robust mutexes
 *   semaphore      nobody holds one
 *
 * Whatever has a time limit ends by itself and is no wait here, nor is a futex
 * of anybody but libc. So nothing is ever added to the way of a lock.
 *
 * Source: glibc sysdeps/nptl/bits/struct_mutex.h, struct_rwlock.h,
 * nptl/pthread_mutex_lock.c, pthread_rwlock_common.c, pthread_join_common.c,
 * descr.h; futex(2), get_robust_list(2).
 */
#ifndef COLLECT_WAITS_FOR_H
#define COLLECT_WAITS_FOR_H

#include "collect/threads/tasks.h"

#include <stdbool.h>
#include <stdint.h>

enum cpprof__waits_for_kind {
    CPPROF__FOR_NOTHING, /* that is known here */
    CPPROF__FOR_MUTEX,
    CPPROF__FOR_READ_LOCK,
    CPPROF__FOR_WRITE_LOCK,
    CPPROF__FOR_JOIN,
    CPPROF__FOR_SEMAPHORE,
    CPPROF__FOR_CONDITION, /* of functions only: it, and then its mutex */
    CPPROF__FOR_LOADER,    /* the same: its list, which it locks */
};

struct cpprof__waits_for {
    enum cpprof__waits_for_kind kind;
    bool is_pi;      /* a mutex whose waiters are the kernel's */
    bool is_refused; /* by the kernel: it waits for nothing at all */
    uintptr_t lock;  /* its address; of a join 0 */
    int32_t holder;  /* tid; of a join who is to end; 0: not known */
    bool is_between; /* processes: the holder may be of another one */
    bool may_be_robust;
};

/*
 * What the futex of a call is, if it is that of a lock or a join. Of a mutex
 * and a rwlock that is a guess until cpprof__waits_for_is_true() has seen the
 * stack. Semaphores and rwlocks that readers hold are not guessed, since any
 * futex looks like one: for those kind is CPPROF__FOR_NOTHING.
 */
struct cpprof__waits_for
cpprof__waits_for_guess(const struct cpprof__task_call *call);

/*
 * Is the thread, whose stack is a node of cpprof__tables.tree, in the function
 * of libc that waits for that? wait_kind: what our hooks know of it, or 0. A
 * guess of nothing may become a semaphore or a rwlock.
 */
bool
cpprof__waits_for_is_true(struct cpprof__waits_for *guess,
                          const struct cpprof__task_call *call, uint32_t stack,
                          uint32_t wait_kind);

/* Is a thread with that stack in the loader, or called by it? Then it may have
 * the loader's locks. */
bool
cpprof__waits_for_in_loader(uint32_t stack);

/* Who holds it now; 0: nobody, or not known. */
int32_t
cpprof__waits_for_holder(const struct cpprof__waits_for *wait);

/* Is the holder a thread of this process? One of another may have the same tid
 * in another namespace, so of a lock between processes that is known only where
 * no other process has its memory now, and of robust mutexes, which are in
 * their holder's list. */
bool
cpprof__waits_for_one_of_ours(const struct cpprof__waits_for *wait);

/* "mutex", "rwlock (to read)", "join" */
const char *
cpprof__waits_for_name(enum cpprof__waits_for_kind kind);

#endif
