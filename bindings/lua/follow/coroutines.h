/* SPDX-License-Identifier: MIT */
/* Which coroutine runs. */
#ifndef LUA_COROUTINES_H
#define LUA_COROUTINES_H

#include "../compat.h"

/* Put coroutine.resume and coroutine.wrap in the place of Lua's own: the same,
 * and known is which coroutine runs. */
void
coroutines_open(lua_State *L);

#endif
