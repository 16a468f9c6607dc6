/* SPDX-License-Identifier: MIT */
/* Stacks of scripts: walked at a hook (walk.c), or peeked at wherever the
 * script is (peek.c). */
#ifndef LUA_STACKS_H
#define LUA_STACKS_H

#include "../state/state.h"

/* cpprof_vm_ops.stack: for profiles of scripts. */
size_t
walk_stack(void *state, struct cpprof_vm_frame *frames, size_t max);

/* Have the functions on the stack remembered, with their names. */
void
walk_names(struct state *s);

/* cpprof_vm_ops.peek: for profiles of native code. */
void
peek_stack(void *state, cpprof_vm_visit *visit, void *ctx);

#endif
