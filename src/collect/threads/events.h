/* SPDX-License-Identifier: MIT */
/*
 * Perf events as the rest of the process sees them: who needs them to stop asks
 * the drainer, in whose table of descriptors they are.
 */
#ifndef COLLECT_EVENTS_H
#define COLLECT_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Around an exec by the calling thread: its perf event is off, because the
 * signal would meet the new image without a handler; POSIX timers and what they
 * sent are taken away by the kernel. Waits for the drainer or, if that does not
 * come, for the end of what the event may send. False: there are no events, and
 * nothing is to be resumed. Safety: AS.
 */
bool
cpprof__events_suspend(void);
void
cpprof__events_resume(void);

/* Wait until the drainer has tended all events once more, a second at most. */
void
cpprof__events_ask(void);

/* By the drainer: how often it was asked, before it tends them, and after. */
uint32_t
cpprof__events_asked(void);
void
cpprof__events_tell_tended(uint32_t asked);

/* By the drainer, while it waits for something: an exec does not. The lock of
 * threads is not needed for that. */
void
cpprof__events_hold(void);

void
cpprof__events_in_child(void);

#endif
