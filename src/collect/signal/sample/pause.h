/* SPDX-License-Identifier: MIT */
/*
 * Threads that block the sampling signal get none. A signal that comes to one
 * stays pending, and the program sees it: in sigpending(), in sigwait() and its
 * like, in a signalfd, at the end of a ppoll() that opens the mask. So the
 * timer or event of a thread stands still while the thread blocks the signal,
 * and its CPU time is charged by its clock.
 *
 * What makes ticks is stopped before the thread blocks the signal: a tick that
 * came until then is delivered at the end of that system call, and no other
 * follows. Others may arm the thread at the same time. They show its slot,
 * look at its mask, and arm it then; the thread blocks the signal and then
 * looks at its slot once more. So one of the two sees the other, and what came
 * in between is taken out of the queue.
 *
 * All of it is async-signal-safe, and keeps errno.
 */
#ifndef COLLECT_SIGNAL_PAUSE_H
#define COLLECT_SIGNAL_PAUSE_H

#include "collect/signal/tables/thread.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* struct cpprof__thread.pace */
enum cpprof__pace {
    CPPROF__TICKS,
    CPPROF__PAUSED_BY_OTHERS, /* who saw that it blocks the signal */
    CPPROF__PAUSED,           /* by itself */
    CPPROF__TICKS_AGAIN,      /* soon: somebody is at it */
};

/* For who is arming it: it has not begun to tick. */
void
cpprof__thread_note_paused(struct cpprof__thread *t);
/* The time of the pause is charged to "[signal blocked]", and t ticks again. */
void
cpprof__thread_go_on(struct cpprof__thread *t);

/* Charge the time until now of a thread that gets no ticks. due: by its clock.
 */
void
cpprof__thread_charge_blocked(struct cpprof__thread *t, uint64_t due,
                              uintptr_t frame);

/* ---- of the calling thread -------------------------------------------- */

/* Is it a thread of this process, and not a child of vfork() that has its
 * memory? */
bool
cpprof__mask_is_ours(void);
/* Its mask as it is, before any change was seen. */
void
cpprof__mask_note_own(void);
/* Before it blocks the signal, whatever its mask was. True: it had ticks until
 * now. */
bool
cpprof__mask_close(void);
/* After it has. late: it did before, and had ticks. */
void
cpprof__mask_closed(bool late);
/* After it has opened its mask to the signal. */
void
cpprof__mask_opened(void);

/* Signals of ours that are pending are taken away, of which there are none but
 * where a mask is changed by ways that are not seen. */
void
cpprof__mask_take_pending(void);

/*
 * A new thread blocks the signal because its creator does, and not because it
 * wants to. In the kernel it does not while a session runs, whose handler is
 * there: it is sampled. It sees the mask that it was given; and when a signal
 * comes that is not ours, it blocks it after all and gives it back, so that it
 * goes where it would have gone.
 */
void
cpprof__mask_lend(void);
/* In the handler, by such a thread: true, the signal was given back. */
bool
cpprof__mask_give_back(const siginfo_t *info, void *context);
/* Such a thread is about to need its mask as it sees it. */
void
cpprof__mask_end_loan(void);

/* Timers of src/vm that tick the calling thread stand still, or go on. NULL:
 * there are none. Safety of the call: AS. */
extern void (*cpprof__script_pause)(bool pauses);

/* ---- of the process's timer ------------------------------------------- */

/* It stands still while any thread blocks the signal, because its signals are
 * the process's. May it run? */
bool
cpprof__itimer_may_run(void);

/* Whose ITIMER_PROF is: a session takes it, and the program has it from its own
 * setitimer() on. Until the next session its signals are the program's, too. */
void
cpprof__itimer_take(void);
void
cpprof__itimer_give_up(void);

/* Set or stop it, unless it is the program's: an errno. */
int
cpprof__itimer_set(uint64_t period_ns);

/* Time that was not sampled because it stood still is charged. */
void
cpprof__itimer_charge_blocked(void);

/* In a forked child, in its only thread. */
void
cpprof__mask_in_child(void);
/* The calling thread ends. */
void
cpprof__mask_thread_ended(void);

#endif
