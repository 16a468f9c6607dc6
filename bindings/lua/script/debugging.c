/* SPDX-License-Identifier: MIT */
/*
 * debug.sethook and debug.gethook act on the program's hook: ours is removed
 * during the call and set again after it. A program that keeps the original
 * functions, or sets a hook in C, is noticed by ticks.
 */
#include "debugging.h"

#include "../follow/hooks.h"
#include "../state/state.h"

static lua_State *
coroutine_of(lua_State *L)
{
    return lua_isthread(L, 1) ? lua_tothread(L, 1) : L;
}

static lua_CFunction
original(lua_State *L)
{
    lua_CFunction *kept = lua_touserdata(L, lua_upvalueindex(1));

    return *kept;
}

static int
call(lua_State *L)
{
    lua_CFunction function = original(L);
    lua_State *co = coroutine_of(L);
    struct state *s = state_of(L);
    int n;

    if (!s)
        return function(L);
    hook_remove(s, co);
    n = function(L);
    hook_again(s, co);
    return n;
}

/* Two functions, so that profiles show their names. */
static int
sethook(lua_State *L)
{
    return call(L);
}

static int
gethook(lua_State *L)
{
    return call(L);
}

/* The table debug is on top. */
static void
replace(lua_State *L, const char *name, lua_CFunction own)
{
    lua_CFunction *kept, function;

    lua_getfield(L, -1, name);
    function = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    if (!function || function == own)
        return;
    kept = lua_newuserdata(L, sizeof *kept);
    *kept = function;
    lua_pushcclosure(L, own, 1);
    lua_setfield(L, -2, name);
}

void
debugging_open(lua_State *L)
{
    lua_getglobal(L, "debug");
    if (lua_istable(L, -1)) {
        replace(L, "sethook", sethook);
        replace(L, "gethook", gethook);
    }
    lua_pop(L, 1);
}
