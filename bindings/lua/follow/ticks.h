/* SPDX-License-Identifier: MIT */
/* When a state is to come to a safepoint. */
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

/* What the calling thread runs, if it is thought to run s: a host may call
 * several states, one of them from another's function, too. NULL: none. Safety:
 * AS. */
struct state *
state_here(struct state *s);

/* It is here: come to a safepoint at the next event, also when no profile of
 * scripts runs. False: that was dear a moment ago, and is not done. Safety:
 * AS. */
bool
state_arm(struct state *s);

#endif
