/* SPDX-License-Identifier: MIT */
/* The one session of interpreted code, from start to stop. */
#ifndef VM_SESSION_H
#define VM_SESSION_H

#include "base/own.h"
#include "collect/runtime/life.h"
#include "vm/profile/queue.h"
#include "vm/profile/table.h"
#include "vm/state/vm.h"

/* Working memory of one sample; kept for the next. */
struct cpprof__vm_scratch {
    struct cpprof__vm_scratch *next;
    uint32_t max_depth;
    uint32_t *ids;                   /* max_depth */
    struct cpprof_vm_frame frames[]; /* max_depth and one more */
};

/* The life of profiles of interpreted code (life.h). */
extern struct cpprof__life cpprof__vm_life;

/* What the calling thread has run since its last sample is charged. */
void
cpprof__vm_charge_caller(void);

struct cpprof__vm_session {
    struct cpprof__own_lock lock;

    /* Guarded by lock. */
    uint32_t epoch; /* 0: none runs, nothing is taken */
    uint32_t max_depth;
    struct cpprof__vm_table table;
    struct cpprof__vm_queue queue;
    bool has_to_forget; /* before it is told of anything else */
    struct cpprof__vm_scratch *scratches;
    uint64_t lost_ns;   /* there was no room */
    uint64_t silent_ns; /* of threads that gave no answer until the end */

    /* A futex of the writer: 1, there is something to do. */
    uint32_t wake;
};
extern struct cpprof__vm_session cpprof__vm_session;

/* Have it empty what there is. Safety: AS. */
void
cpprof__vm_wake_writer(void);

/* The function is gone. */
void
cpprof__vm_session_forget(const struct cpprof_vm *vm, const void *function);

/* Around fork(); the child has no session. */
void
cpprof__vm_fork_prepare(void);
void
cpprof__vm_fork_parent(void);
void
cpprof__vm_fork_child(void);

#endif
