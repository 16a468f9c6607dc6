/* SPDX-License-Identifier: MIT */
/* Sleeps that a signal cuts short, for scripts: each returns true when one
 * did. */
#include <lauxlib.h>
#include <lua.h>

#include <errno.h>
#include <poll.h>
#include <time.h>

static int
nap(lua_State *L)
{
    lua_Integer ms = luaL_checkinteger(L, 1);
    struct timespec length = {ms / 1000, ms % 1000 * 1000000};

    lua_pushboolean(L, nanosleep(&length, NULL) && errno == EINTR);
    return 1;
}

static int
wait_for_nothing(lua_State *L)
{
    int cut = poll(NULL, 0, (int)luaL_checkinteger(L, 1));

    lua_pushboolean(L, cut < 0 && errno == EINTR);
    return 1;
}

__attribute__((visibility("default"))) int
luaopen_naps(lua_State *L);

int
luaopen_naps(lua_State *L)
{
    lua_createtable(L, 0, 2);
    lua_pushcfunction(L, nap);
    lua_setfield(L, -2, "nap");
    lua_pushcfunction(L, wait_for_nothing);
    lua_setfield(L, -2, "poll");
    return 1;
}
