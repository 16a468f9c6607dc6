/* SPDX-License-Identifier: MIT */
/* One source for the C API of Lua 5.1 (and LuaJIT) to 5.4: functions that the
 * older ones lack, under the newer name if the meaning is the same. */
#ifndef LUA_COMPAT_H
#define LUA_COMPAT_H

#include "arch/atomic.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdint.h>
#include <string.h>

#if LUA_VERSION_NUM >= 504
#define HAVE_LUA54 1
#else
#define HAVE_LUA54 0
#endif

#if LUA_VERSION_NUM < 502
#define LUA_HOOKTAILCALL (-1) /* no such event */

static inline void
lua_rawgetp(lua_State *L, int index, const void *key)
{
    if (index < 0 && index > LUA_REGISTRYINDEX)
        index--;
    lua_pushlightuserdata(L, (void *)key);
    lua_rawget(L, index);
}

static inline void
lua_rawsetp(lua_State *L, int index, const void *key)
{
    if (index < 0 && index > LUA_REGISTRYINDEX)
        index--;
    lua_pushlightuserdata(L, (void *)key);
    lua_insert(L, -2);
    lua_rawset(L, index);
}
#endif

#if LUA_VERSION_NUM < 502
/* Only LuaJIT has it. */
extern int
luaJIT_setmode(lua_State *L, int index, int mode) __attribute__((weak));
#endif

static inline int
is_luajit(void)
{
#if LUA_VERSION_NUM < 502
    return luaJIT_setmode != 0;
#else
    return 0;
#endif
}

#ifndef LUA_LOADED_TABLE
#define LUA_LOADED_TABLE "_LOADED"
#endif

/* luaL_setfuncs is not in Lua 5.1. */
static inline void
set_functions(lua_State *L, const luaL_Reg *list)
{
    for (; list->name; list++) {
        lua_pushcfunction(L, list->func);
        lua_setfield(L, -2, list->name);
    }
}

static inline void
push_library(lua_State *L, const luaL_Reg *list)
{
    lua_newtable(L);
    set_functions(L, list);
}

static inline int
is_tail_called(const lua_Debug *ar)
{
#if LUA_VERSION_NUM >= 502
    return ar->istailcall;
#else
    return 0; /* a level of its own, of what "tail" */
#endif
}

static inline size_t
source_length(const lua_Debug *ar)
{
#if HAVE_LUA54
    return ar->srclen;
#else
    return strlen(ar->source);
#endif
}

/* Tells functions apart that begin and end on the same lines. */
static inline uint32_t
shape_of(const lua_Debug *ar)
{
#if LUA_VERSION_NUM >= 502
    return (uint32_t)ar->nparams << 16 | (uint32_t)(ar->isvararg != 0) << 8 |
           ar->nups;
#else
    return (uint32_t)ar->nups;
#endif
}

#endif
