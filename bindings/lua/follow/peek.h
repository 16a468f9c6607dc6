/* SPDX-License-Identifier: MIT */
/* Stacks for profiles of native code. */
#ifndef LUA_PEEK_H
#define LUA_PEEK_H

#include "../state/state.h"

void
peek_stack(void *state, cpprof_vm_visit *visit, void *ctx);

#endif
