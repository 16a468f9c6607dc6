/* SPDX-License-Identifier: MIT */
/* Bring a state to a safepoint. */
#ifndef LUA_TICKS_H
#define LUA_TICKS_H

#include "../state/state.h"

#include <stdbool.h>

/* Once in a process. */
void
tick_begin(void);

/* cpprof_vm_ops.interrupt */
void
tick_interrupt(void *state);

/* The state that the calling thread runs, if it is thought to run s: a host may
 * call several states, also one from a function of another. NULL: none. Safety:
 * AS. */
struct state *
state_here(struct state *s);

/* The calling thread runs the state: come to a safepoint at its next event,
 * also when no profile of scripts runs. False: that was dear a moment ago and
 * is not done. Safety: AS. */
bool
state_arm(struct state *s);

#endif
