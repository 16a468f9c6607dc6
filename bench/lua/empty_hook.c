/* SPDX-License-Identifier: MIT */
/* What a hook for calls and returns costs that does nothing. */
#include <lauxlib.h>
#include <lua.h>

__attribute__((visibility("default"))) int
luaopen_empty_hook(lua_State *L);

static void
hook(lua_State *L, lua_Debug *ar)
{
}

int
luaopen_empty_hook(lua_State *L)
{
    lua_sethook(L, hook, LUA_MASKCALL | LUA_MASKRET, 0);
    return 0;
}
