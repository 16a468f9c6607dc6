/* SPDX-License-Identifier: MIT */
/*
 * All threads of this process but the caller stand still while a function runs,
 * and their registers are known.
 *
 * A process beside ours, which has our memory, attaches to each thread by
 * ptrace and lets go of it again; no signal handler runs, and no thread is the
 * debugger's for longer than that. A stop wakes a thread that sleeps in a
 * system call, as a signal without a handler does. Most calls go on by
 * themselves; those that would return EINTR are made to (a wait with a time-out
 * then begins its time anew). A call that has transferred a part may return
 * that part; so a thread that sleeps in a call that writes, or in another that
 * is not known to bear it, is waited for, and if it does not leave that call
 * there is no stop at all.
 */
#ifndef COLLECT_LEAK_STOP_H
#define COLLECT_LEAK_STOP_H

#include "collect/leak/shared.h"

/* Threads as they are now, as far as it can be told without a stop. */
void
cpprof__leak_look_at_threads(struct cpprof__leak_shared *shared);

/*
 * Call f, and then let them go on. False: shared->stop says why f was not
 * called. f takes no lock and does not allocate: who stands may hold that lock.
 * The calling thread is one of ours, with all signals blocked.
 */
bool
cpprof__leak_stopped(struct cpprof__leak_shared *shared,
                     void (*f)(struct cpprof__leak_shared *shared, void *arg),
                     void *arg);

#endif
