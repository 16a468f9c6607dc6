/* SPDX-License-Identifier: MIT */
/* require "cpprof". */
#ifndef LUA_MODULE_H
#define LUA_MODULE_H

#include "../compat.h"
#include <cpprof/status.h>

CPPROF_API int
luaopen_cpprof(lua_State *L);
CPPROF_API int
cpprof_lua_init(lua_State *L);

#endif
