/* SPDX-License-Identifier: MIT */
/* Which native thread runs a coroutine. */
#ifndef LUA_RUNNING_H
#define LUA_RUNNING_H

#include "../compat.h"

#include <stdbool.h>
#include <stdint.h>

/* False: another native thread runs L. True: this one, or it is not known.
 * Safety: AS; so have all but the last. */
bool
running_here(lua_State *L);
/* Is it in a protected call, of any thread? 1 or 0; -1: not known. */
int
running_at_all(lua_State *L);
/* Where on this thread's stack the innermost protected call of L is; 0: there
 * is none, or it is not known. Less is deeper. */
uintptr_t
running_depth(lua_State *L);
/* Find out how all this can be known, by L, of which one protected call was
 * made, between here and high on the C stack. */
void
running_learn(lua_State *L, const void *high);

#endif
