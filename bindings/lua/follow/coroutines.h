/* SPDX-License-Identifier: MIT */
/* Which coroutine runs. */
#ifndef LUA_COROUTINES_H
#define LUA_COROUTINES_H

#include "../compat.h"

/* Replace Lua's coroutine.resume and coroutine.wrap by functions that do the
 * same, and note which coroutine runs. */
void
coroutines_open(lua_State *L);

#endif
