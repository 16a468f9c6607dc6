/* SPDX-License-Identifier: MIT */
/*
 * Every call that is taken over and waits, each where it waits for ever, on
 * objects that are new each time: who leaves one by a jump leaves them in a
 * state in which the C library cannot go on with them.
 */
#ifndef LIVE_LOCK_CALLS_H
#define LIVE_LOCK_CALLS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of calls, and their names. */
#define LOCK_CALLS 24
extern const char *const lock_call_names[LOCK_CALLS];

/* Is it a point of cancellation? */
bool
lock_call_is_cancellable(int which);

/* Make what it waits for; by the thread that holds it. */
void
lock_call_prepare(int which);

/* Wait, for ever. */
void
lock_call_wait(int which);

/* Give up the mutex that who is cancelled in there holds, if it was one. */
void
lock_call_cancelled(int which);

#ifdef __cplusplus
}
#endif

#endif
