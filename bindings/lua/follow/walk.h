/* SPDX-License-Identifier: MIT */
/* Stacks for profiles of scripts. */
#ifndef LUA_WALK_H
#define LUA_WALK_H

#include "../state/state.h"

size_t
walk_stack(void *state, struct cpprof_vm_frame *frames, size_t max);

/* Have the functions on the stack remembered, with their names. */
void
walk_names(struct state *s);

#endif
