/* SPDX-License-Identifier: MIT */
/*
 * Where the stacks of threads are, so that the unwinder can read them directly.
 * A stack that is not known is read through the kernel, which is right as well
 * and costs microseconds.
 */
#ifndef COLLECT_STACKS_H
#define COLLECT_STACKS_H

#include "base/buffer.h"
#include "collect/signal/tables/thread.h"

#include <stddef.h>

/* The calling, new thread's stack, of which pthread_create was asked for
 * stack_bytes. */
void
cpprof__stack_of_new_thread(struct cpprof__thread *t, size_t stack_bytes);

/* The same for hooks on that thread, whose walk of an allocation's stack then
 * reads it directly instead of asking the kernel, some 0.4 us instead of 1.5. 0
 * bytes, which is not known, does nothing. Safety: MT. */
void
cpprof__stack_of_hooks(size_t stack_bytes);

/* And for hooks on the main thread, before the heap's tables are made. Safety:
 * ONCE. */
void
cpprof__stack_of_main(void);

/* Note where the calling thread's stack is, as if it had been sampled, so that
 * it is learnt before its first sample. */
void
cpprof__stack_note_own(void);

/*
 * Learn the stacks of threads that were sampled outside what is known of them.
 * /proc/self/maps is read in between, without the lock that guards the slots of
 * threads: of a program with thousands of threads that takes long. A thread
 * that is still in its slot then still has the stack that was found.
 */
#define CPPROF__STACKS_AT_ONCE 256 /* the others can wait for the next scan */

struct cpprof__stacks_wanted {
    size_t n;
    struct cpprof__thread *threads[CPPROF__STACKS_AT_ONCE];
    int32_t tids[CPPROF__STACKS_AT_ONCE];
};

/* With the lock. */
void
cpprof__stacks_find(struct cpprof__stacks_wanted *wanted);
/* Without. False: there is nothing to learn. */
bool
cpprof__stacks_read(const struct cpprof__stacks_wanted *wanted,
                    struct cpprof__buffer *maps);
/* With it. */
void
cpprof__stacks_learn(const struct cpprof__stacks_wanted *wanted,
                     const struct cpprof__buffer *maps);

#endif
