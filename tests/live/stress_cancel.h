/* SPDX-License-Identifier: MIT */
/*
 * Cancel a thread in each of the calls that are taken over: it dies where it
 * waits, or behind it where that is no cancellation point, holds its lock while
 * it is cleaned up, and can be joined.
 */
#ifndef LIVE_STRESS_CANCEL_H
#define LIVE_STRESS_CANCEL_H

#include <stdbool.h>

/* Around all of them. */
void
cancel_begin(void);
void
cancel_end(void);

/* One thread, in the i-th call; not from two threads at once. */
bool
cancel_once(unsigned i);

#endif
