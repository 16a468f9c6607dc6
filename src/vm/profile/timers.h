/* SPDX-License-Identifier: MIT */
/*
 * Mode CPU: a timer on the CPU clock of each native thread that runs an
 * interpreter, so that samples are spread evenly over CPU time. A tick of wall
 * time would mostly find the thread where it waits.
 *
 * The timer's signal comes to the thread itself. Its handler asks the stack
 * that the thread has entered to come to a safepoint, which charges the time.
 * Some interpreters are never entered (cpprof_vm_thread_set_tid) but can be
 * read at any moment (CPPROF_VM_SIGNAL_SAFE). For those the handler takes the
 * stack itself and puts it into a ring, which the writer empties.
 *
 * A timer is made when a thread first enters or comes to a safepoint. It ends
 * with the thread, with the session, in a forked child and at an exec (there by
 * the kernel). Their slots are never given back to the system, so that a signal
 * that comes late finds one. Threads without a timer, or that block its signal,
 * are asked at ticks of wall time (ticker.c).
 */
#ifndef VM_TIMERS_H
#define VM_TIMERS_H

#include "vm/profile/output.h"
#include "vm/state/vm.h"

/* Before a session. Where there is no memory or no signal, it has no timers. */
void
cpprof__vm_timers_begin(uint64_t period_ns, uint32_t max_depth);
/* They are made from here on. Under the lock of the list of threads. */
void
cpprof__vm_timers_open(uint32_t epoch);
/* All are gone, and no handler is inside. Returns time that is in no stack. */
uint64_t
cpprof__vm_timers_end(void);
/* Write the stacks that handlers took to output. Safety: one thread at a time.
 */
void
cpprof__vm_timers_drain(struct cpprof__vm_output *output);
/* After the last drain. */
void
cpprof__vm_timers_free(void);

/* From time to time: find timers whose threads are gone, or block them. */
void
cpprof__vm_timers_look_after(void);

/* The calling thread runs t: t is its timer's. Safety: AS. */
void
cpprof__vm_timer_begin(struct cpprof__vm_thread *t, uint32_t epoch);

/*
 * t is at a safepoint of any thread. False: its time is to be counted there.
 * True: its timer does that, and *missed_ns is what it did not.
 */
bool
cpprof__vm_timer_counts(struct cpprof__vm_thread *t, uint32_t epoch,
                        uint64_t *missed_ns);

/* t ends. Under the lock of the list. */
void
cpprof__vm_timer_end(struct cpprof__vm_thread *t);

/* Does a timer see to t? */
bool
cpprof__vm_is_timed(const struct cpprof__vm_thread *t);

void
cpprof__vm_timers_fork_child(void);

#endif
