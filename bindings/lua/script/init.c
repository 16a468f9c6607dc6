/* SPDX-License-Identifier: MIT */
/*
 * Loaded by the code that libcpprof.so put into LUA_INIT
 * (src/vm/load/lua_init.c). It restores the variable, so that the script and
 * the processes that it starts see the original value, and runs that value as
 * lua.c does.
 */
#include "init.h"

#include "module.h"

#include <stdlib.h>

/* ORDER: lua_init.c */
#define FORMER_VARIABLE "CPPROF_LUA_INIT"

#if HAVE_LUA54
#define VARIABLE "LUA_INIT_5_4"
#else
#define VARIABLE "LUA_INIT"
#endif

CPPROF_API int
cpprof_lua_init(lua_State *L);

void
init_give_back(void)
{
    const char *former = getenv(FORMER_VARIABLE);

    if (!former)
        return;
    if (*former == '=')
        setenv(VARIABLE, former + 1, 1);
    else
        unsetenv(VARIABLE);
    unsetenv(FORMER_VARIABLE);
}

static void
run(lua_State *L, const char *text, const char *name)
{
    int failed = *text == '@' ? luaL_loadfile(L, text + 1)
                              : luaL_loadbuffer(L, text, strlen(text), name);

    if (failed)
        lua_error(L);
    lua_call(L, 0, 0);
}

int
cpprof_lua_init(lua_State *L)
{
    const char *text;

    init_give_back();
    lua_pushcfunction(L, luaopen_cpprof);
    if (lua_pcall(L, 0, 0, 0))
        lua_pop(L, 1);
    text = getenv(VARIABLE);
    if (text)
        run(L, text, "=" VARIABLE);
    else if (strcmp(VARIABLE, "LUA_INIT") && (text = getenv("LUA_INIT")))
        run(L, text, "=LUA_INIT");
    return 0;
}
