/* SPDX-License-Identifier: MIT */
/*
 * require "cpprof": docs/lua.md tells what the functions are for.
 *
 * Failures that a program can meet are nil and a text; wrong arguments are
 * errors.
 */
#include "state.h"

#include <cpprof/writer.h>

#include <stdlib.h>

#define DEFAULT_OUT "lua.pb.gz"

static uint32_t
option(lua_State *L, const char *name, lua_Integer most)
{
    lua_Integer value = 0;

    if (lua_istable(L, 1)) {
        lua_getfield(L, 1, name);
        if (!lua_isnil(L, -1)) {
            value = luaL_checkinteger(L, -1);
            if (value < 1 || value > most)
                luaL_error(L, "cpprof.start: %s is not from 1 to %d", name,
                           (int)most);
        }
        lua_pop(L, 1);
    }
    return (uint32_t)value;
}

static enum cpprof_vm_mode
mode_option(lua_State *L)
{
    /* ORDER: enum cpprof_vm_mode */
    static const char *const modes[] = {"tick", "span", "cpu", NULL};
    int mode = 0;

    if (lua_istable(L, 1)) {
        lua_getfield(L, 1, "mode");
        mode = luaL_checkoption(L, -1, modes[0], modes);
        lua_pop(L, 1);
    }
    return (enum cpprof_vm_mode)mode;
}

static bool
wants_merge(lua_State *L)
{
    bool merge = true;

    if (lua_istable(L, 1)) {
        lua_getfield(L, 1, "merge");
        merge = lua_isnil(L, -1) || lua_toboolean(L, -1);
        lua_pop(L, 1);
    }
    return merge;
}

/* A profile runs. The coroutines that wait for this one have no hook yet. */
static void
hook_all(struct state *s, lua_State *L)
{
    struct resumption *up;

    hook_for_sleeps(s);
    hook_for_switch(s, L);
    for (up = s->resumed; up; up = up->up)
        hook_for_switch(s, up->from);
}

static int
start(lua_State *L)
{
    struct cpprof_vm_options options = {.size = sizeof options};
    struct state *s = state_open(L);
    struct cpprof_writer writer;
    struct cpprof_error error;

    if (!lua_isnoneornil(L, 1))
        luaL_checktype(L, 1, LUA_TTABLE);
    options.mode = mode_option(L);
    options.rate_hz = option(L, "hz", 10000);
    options.max_depth = option(L, "depth", 1024);
    options.flags = wants_merge(L) ? CPPROF_VM_MERGE : 0;
    options.vm = lua_vm;
    lua_settop(L, 1);
    if (!writer_of(L, lua_istable(L, 1) ? 1 : 2, DEFAULT_OUT, &writer,
                   &error) ||
        cpprof_start_vm_profile(writer, &options, &error) != CPPROF_OK)
        return push_failure(L, &error);
    hook_all(s, L);
    if (options.mode == CPPROF_VM_SPAN) {
        cpprof_vm_span_begin(s->thread);
        states_poke();
    }
    lua_pushboolean(L, 1);
    return 1;
}

static int
stop(lua_State *L)
{
    struct state *s = state_open(L);
    enum cpprof_status status;
    struct cpprof_error error;

    s->at = L;
    s->level = 0;
    s->after_tail_call = false;
    cpprof_vm_span_end(s->thread);
    status = cpprof_stop_vm_profile(&error);
    s->at = NULL;
    if (status != CPPROF_OK)
        return push_failure(L, &error);
    lua_pushboolean(L, 1);
    return 1;
}

int
luaopen_cpprof(lua_State *L)
{
    static const luaL_Reg functions[] = {{"start", start},
                                         {"stop", stop},
                                         {"labels", labels_call},
                                         {NULL, NULL}};
    struct state *s = state_open(L);

    init_give_back();
    coroutines_open(L);
    push_library(L, functions);
    profiles_open(L);
    hook_all(s, L);
    cpprof_vm_span_begin(s->thread);
    return 1;
}
