/* SPDX-License-Identifier: MIT */
/*
 * coroutine.resume and coroutine.wrap, as Lua 5.4 has them, that note which
 * coroutine runs and on whose behalf: the C API does not tell. And
 * coroutine.create, which gives away the program's debug hook, not ours. In
 * Lua 5.1 and LuaJIT those of the language stay.
 */
#include "coroutines.h"

#include "../names/functions.h"
#include "../state/state.h"
#include "hooks.h"
#include "labels.h"

#include <cpprof/labels.h>

#if HAVE_LUA54
/* co on top of L. Its own stack may be full. */
static void
push_coroutine(lua_State *L, lua_State *co)
{
    luaL_checkstack(L, 8, NULL);
    if (!lua_checkstack(co, 1)) {
        lua_pushnil(L);
        return;
    }
    lua_pushthread(co);
    lua_xmove(co, L, 1);
}

/* lua_resume, and what goes with it. A coroutine from before the profile has
 * no hook, nor has one that it goes back to. */
static int
switch_to(lua_State *L, lua_State *co, int n_arguments, int *n_results)
{
    struct state *s = state_of(L);
    struct resumption back = {L, NULL, cpprof_labels_current()};
    const struct cpprof_labels *outer;
    lua_State *was;
    int status;

    if (!s)
        return lua_resume(co, L, n_arguments, n_results);
    was = s->running;
    outer = s->own_labels;
    s->own_labels = NULL;
    if (s->uses_labels) {
        push_coroutine(L, co);
        labels_enter(L, s);
    }
    hook_for_switch(s, co);
    back.up = s->resumed;
    store_relaxed(&s->resumed, &back);
    store_release(&s->running, co);
    status = lua_resume(co, L, n_arguments, n_results);
    store_release(&s->running, was);
    store_relaxed(&s->resumed, back.up);
    s->own_labels = outer;
    hook_for_switch(s, L);
    if (s->uses_labels)
        cpprof_labels_set_current(back.labels);
    return status;
}

/* Returns how many results are on the stack of L; -1: an error is on top. */
static int
resume(lua_State *L, lua_State *co, int n_arguments)
{
    int status, n_results;

    if (!lua_checkstack(co, n_arguments)) {
        lua_pushliteral(L, "too many arguments to resume");
        return -1;
    }
    lua_xmove(L, co, n_arguments);
    status = switch_to(L, co, n_arguments, &n_results);
    if (status != LUA_OK && status != LUA_YIELD) {
        lua_xmove(co, L, 1);
        return -1;
    }
    if (!lua_checkstack(L, n_results + 1)) {
        lua_pop(co, n_results);
        lua_pushliteral(L, "too many results to resume");
        return -1;
    }
    lua_xmove(co, L, n_results);
    return n_results;
}

static int
coroutine_resume(lua_State *L)
{
    int n;

    luaL_checktype(L, 1, LUA_TTHREAD);
    n = resume(L, lua_tothread(L, 1), lua_gettop(L) - 1);
    lua_pushboolean(L, n >= 0);
    if (n < 0) {
        lua_insert(L, -2);
        return 2;
    }
    lua_insert(L, -(n + 1));
    return n + 1;
}

/* An error in a coroutine of wrap() is its caller's, and where it was called
 * stands in front of a text. */
static int
raise(lua_State *L, lua_State *co)
{
    int status = lua_status(co);

    if (status != LUA_OK && status != LUA_YIELD) {
        status = lua_resetthread(co);
        lua_xmove(co, L, 1);
    }
    if (status != LUA_ERRMEM && lua_type(L, -1) == LUA_TSTRING) {
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    return lua_error(L);
}

static int
coroutine_wrapped(lua_State *L)
{
    lua_State *co = lua_tothread(L, lua_upvalueindex(1));
    int n = resume(L, co, lua_gettop(L));

    return n < 0 ? raise(L, co) : n;
}

/* Push a coroutine of the function that is the first argument. */
static void
new_coroutine(lua_State *L)
{
    struct state *s = state_of(L);
    lua_State *co;

    luaL_checktype(L, 1, LUA_TFUNCTION);
    co = lua_newthread(L);
    lua_pushvalue(L, 1);
    lua_xmove(L, co, 1);
    if (s)
        hook_for_new(s, L, co);
}

static int
coroutine_create(lua_State *L)
{
    new_coroutine(L);
    return 1;
}

static int
coroutine_wrap(lua_State *L)
{
    new_coroutine(L);
    lua_pushcclosure(L, coroutine_wrapped, 1);
    return 1;
}

void
coroutines_open(lua_State *L)
{
    static const luaL_Reg functions[] = {{"create", coroutine_create},
                                         {"resume", coroutine_resume},
                                         {"wrap", coroutine_wrap},
                                         {NULL, NULL}};

    store_relaxed(&function_of_wrap, coroutine_wrapped);
    lua_getglobal(L, "coroutine");
    if (lua_istable(L, -1))
        set_functions(L, functions);
    lua_pop(L, 1);
}
#else
void
coroutines_open(lua_State *L)
{
}
#endif
