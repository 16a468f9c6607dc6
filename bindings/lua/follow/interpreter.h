/* SPDX-License-Identifier: MIT */
/* Lua, as the library knows it. */
#ifndef LUA_INTERPRETER_H
#define LUA_INTERPRETER_H

#include "../state/state.h"

/* Tell the library of the calling state, and the first time of the interpreter;
 * raises errors. Idempotent. NULL: the state is being closed. */
struct state *
interpreter_open(lua_State *L);

#endif
