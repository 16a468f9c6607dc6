/* SPDX-License-Identifier: MIT */
/* The debug library while our hooks are set. */
#ifndef LUA_DEBUGGING_H
#define LUA_DEBUGGING_H

#include "../compat.h"

/* Replace debug.sethook and debug.gethook by functions that act on the
 * program's hook. */
void
debugging_open(lua_State *L);

#endif
