/* SPDX-License-Identifier: MIT */
/* From a stack and its time to records, which a session queues. */
#ifndef VM_SAMPLE_H
#define VM_SAMPLE_H

#include "collect/runtime/own_lock.h"
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
};
extern struct cpprof__vm_session cpprof__vm_session;

/* Charge the stack of t with value_ns, which then leaves its span_ns;
 * nothing when the session is over. */
void
cpprof__vm_sample(struct cpprof__vm_thread *t, uint32_t epoch,
                  uint64_t value_ns);

#endif
