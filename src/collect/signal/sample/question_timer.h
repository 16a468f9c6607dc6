/* SPDX-License-Identifier: MIT */
/*
 * How a question comes to its thread (dump.h): by a timer on the thread's own
 * CPU clock, which expires as soon as the thread runs. So a thread that sleeps
 * gets no signal, and no system call of its is cut short: the kernel looks at
 * such timers at its own tick, and sends the signal when the thread goes back
 * to user mode (CONFIG_POSIX_CPU_TIMERS_TASK_WORK, Linux 5.10 and later; before
 * that a tick may come in the moments between a system call's begin and its
 * sleep). A thread that does not run keeps its question until it does.
 */
#ifndef COLLECT_SIGNAL_QUESTION_TIMER_H
#define COLLECT_SIGNAL_QUESTION_TIMER_H

#include <stdbool.h>
#include <stdint.h>

/* Questions under way at a time; who asks more is told EAGAIN. */
#define CPPROF__QUESTIONS_MAX 1024u

/*
 * Send a question's value to thread tid. *place is 0 for the first time, and
 * the question's place after it. 0 or an errno: ESRCH, it is gone; EAGAIN, no
 * room, or no timers.
 */
int
cpprof__question_send(int32_t tid, uint64_t value, uint32_t *place);
/* It was answered or given up. */
void
cpprof__question_end(uint32_t *place);

void
cpprof__questions_in_child(void);

/* Waits for questions that are on their way to the calling thread, after
 * signals have been refused (cpprof__sampler). None comes after that. Safety:
 * AS. */
void
cpprof__questions_wait(void);

/*
 * Would a timer on a CPU clock end the process, or may no signal be sent? Where
 * a thread has one that expires the kernel looks at RLIMIT_RTTIME, too: the
 * limit 0 is used up also by who has no real-time scheduling, and brings
 * SIGXCPU or SIGKILL.
 */
bool
cpprof__cpu_timers_are_fatal(void);

#endif
