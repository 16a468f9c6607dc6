/* SPDX-License-Identifier: MIT */
/*
 * A program with Lua inside that profiles its scripts by line:
 *
 *     lua_embed SCRIPT [FILE]        writes FILE, lua.pb.gz
 *     go tool pprof -top lua.pb.gz
 *
 * cc lua_embed.c -llua5.4 -lcpprof, and the module where require finds it
 * (LUA_CPATH).
 */
#include <cpprof/vm.h>
#include <cpprof/writer.h>

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>

static int
fail(const char *what)
{
    fprintf(stderr, "lua_embed: %s\n", what);
    return 1;
}

static int
start(const char *path)
{
    const struct cpprof_vm_options options = {.size = sizeof options,
                                              .mode = CPPROF_VM_MODE_TICK,
                                              .flags = CPPROF_FLAG_MERGE};
    struct cpprof_writer writer;
    struct cpprof_error error;

    if (cpprof_writer_to_path(path, &writer, &error) != CPPROF_OK ||
        cpprof_vm_start(&writer, &options, &error) != CPPROF_OK)
        return fail(error.text);
    return 0;
}

int
main(int argc, char **argv)
{
    struct cpprof_error error;
    lua_State *L = luaL_newstate();
    int status = 0;

    if (argc < 2 || !L)
        return fail("usage: lua_embed SCRIPT [FILE]");
    luaL_openlibs(L);
    /* The state is known to cpprof from here on. */
    if (luaL_dostring(L, "require 'cpprof'"))
        return fail(lua_tostring(L, -1));
    if (start(argc > 2 ? argv[2] : "lua.pb.gz"))
        return 1;
    if (luaL_dofile(L, argv[1]))
        status = fail(lua_tostring(L, -1));
    if (cpprof_vm_stop(&error) != CPPROF_OK)
        status = fail(error.text);
    lua_close(L);
    return status;
}
