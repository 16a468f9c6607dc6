/* SPDX-License-Identifier: MIT */
/*
 * Native stacks that a handler found at a moment at which the interpreter
 * cannot be asked for its own. They are kept with the thread of the interpreter
 * until it comes to a safepoint.
 *
 * Each thread has two buffers, of which one is published. The handler takes the
 * published one by exchange, appends, and publishes it again. A flush exchanges
 * the published one for the other, which is empty. So a handler that interrupts
 * a flush finds an empty buffer.
 */
#ifndef VM_DEFERRED_STACKS_H
#define VM_DEFERRED_STACKS_H

#include "collect/signal/tables/interp_frames.h"
#include "vm/state/vm.h"

/* Bound for each buffer, touched as it is used: some 1000 stacks. */
#define CPPROF__VM_DEFERRED_BYTES (256u << 10)

/* Keep a stack; false: there is no room. Safety: the thread that runs t, in a
 * handler. */
bool
cpprof__vm_deferred_stacks_add(struct cpprof__vm_thread *t,
                               const struct cpprof__deferred_stack *stack);

/* Take all deferred stacks; NULL if there are none or another thread takes
 * them. Give them back afterwards. Safety: MT. */
struct cpprof__vm_deferred_stacks *
cpprof__vm_deferred_stacks_take(struct cpprof__vm_thread *t);
void
cpprof__vm_deferred_stacks_give(struct cpprof__vm_thread *t,
                                struct cpprof__vm_deferred_stacks *taken);

/* The next of what was taken, from *at = 0 on. False: that was all. */
bool
cpprof__vm_deferred_stacks_next(const struct cpprof__vm_deferred_stacks *taken,
                                size_t *at,
                                struct cpprof__deferred_stack *stack);

/* Nothing is kept from here on; of a thread that ends. */
void
cpprof__vm_deferred_stacks_free(struct cpprof__vm_thread *t);

/* In a forked child: drop what the parent deferred. */
void
cpprof__vm_deferred_stacks_forked(struct cpprof__vm_thread *t);

#endif
