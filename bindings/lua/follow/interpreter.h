/* SPDX-License-Identifier: MIT */
/* Lua, as the library knows it. */
#ifndef LUA_INTERPRETER_H
#define LUA_INTERPRETER_H

#include "../state/state.h"

/* Make the calling state known, and at the first the interpreter; raises
 * errors. Idempotent. NULL: the state is being closed. */
struct state *
interpreter_open(lua_State *L);

#endif
