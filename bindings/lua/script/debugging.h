/* SPDX-License-Identifier: MIT */
/* The library debug, with hooks of ours about. */
#ifndef LUA_DEBUGGING_H
#define LUA_DEBUGGING_H

#include "../compat.h"

/* debug.sethook and debug.gethook that are about the program's hook. */
void
debugging_open(lua_State *L);

#endif
