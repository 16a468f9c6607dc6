/* SPDX-License-Identifier: MIT */
/*
 * labels({k = v}, fn, ...): fn under the labels of the caller and these over
 * them. They are the native thread's while fn runs; a coroutine that yields in
 * between takes its own along: a table with weak keys holds what belongs to its
 * innermost call, also when it is closed and never comes back.
 */
#include "labels.h"

#include "../state/state.h"

#include <cpprof/labels.h>

#include <stdlib.h>

/* Tunable: labels of one call. */
#define LABELS_MAX 64

static const char scopes_key; /* of the registry: coroutine -> its scope */

/* What one call of labels() holds on to, below fn on the stack; below that is
 * the one around it in the same coroutine, or nil. Outside of it
 * are the labels of a labels() around it in the same coroutine, or those that
 * whoever resumes it has by then. */
struct scope {
    const struct cpprof_labels *outer;
    const struct cpprof_labels *before; /* in the main coroutine */
    struct cpprof_labels *set;
};

static int
free_scope(lua_State *L)
{
    struct scope *scope = lua_touserdata(L, 1);

    cpprof_labels_free(scope->set);
    scope->set = NULL;
    return 0;
}

static struct scope *
push_scope(lua_State *L)
{
    struct scope *scope = lua_newuserdata(L, sizeof *scope);

    memset(scope, 0, sizeof *scope);
    if (luaL_newmetatable(L, "cpprof.labels")) {
        lua_pushcfunction(L, free_scope);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    return scope;
}

/* Strings live as long as the table that holds them. A value is a string or a
 * whole number. */
static size_t
read_labels(lua_State *L, int index, struct cpprof_label *labels)
{
    size_t n = 0;

    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        struct cpprof_label *label = &labels[n++];

        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_error(L, "cpprof.labels: a name is not a string");
        if (n > LABELS_MAX - 1)
            luaL_error(L, "cpprof.labels: more than %d", LABELS_MAX - 1);
        *label = (struct cpprof_label){.key = lua_tostring(L, -2)};
        if (lua_type(L, -1) == LUA_TSTRING)
            label->str = lua_tostring(L, -1);
        else if (lua_type(L, -1) == LUA_TNUMBER &&
                 lua_tonumber(L, -1) == (lua_Number)lua_tointeger(L, -1))
            label->num = lua_tointeger(L, -1);
        else
            luaL_error(L,
                       "cpprof.labels: '%s' is neither a string nor a "
                       "whole number",
                       label->key);
    }
    return n;
}

/* ---- the innermost call of each coroutine ------------------------------- */

/* Push the table; false: there is none, and nothing is pushed. */
static bool
push_scopes(lua_State *L)
{
    if (!lua_checkstack(L, 8))
        return false;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &scopes_key);
    if (lua_istable(L, -1))
        return true;
    lua_pop(L, 1);
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &scopes_key);
    return true;
}

/* Make the scope at index 2 the coroutine's. The one before it takes the place
 * of the table at index 1. */
static void
begin_scope(lua_State *L)
{
    if (!push_scopes(L))
        luaL_error(L, "cpprof.labels: stack overflow");
    lua_pushthread(L);
    lua_rawget(L, -2);
    lua_replace(L, 1);
    lua_pushthread(L);
    lua_pushvalue(L, 2);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

/* No error: the key is there. */
static void
end_scope(lua_State *L)
{
    if (!push_scopes(L))
        return;
    lua_pushthread(L);
    lua_pushvalue(L, 1);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

/* ---- calls ------------------------------------------------------------- */

/* Of Lua 5.1 and later, with and without a continuation: what fn returned or
 * raised is above the scope. */
static int
finish(lua_State *L, int status)
{
    struct scope *scope = lua_touserdata(L, 2);
    struct state *s = state_of(L);
    const struct cpprof_labels *outside = scope->before;

    if (s && s->resumed)
        outside = scope->outer ? scope->outer : s->resumed->labels;
    if (s)
        s->own_labels = scope->outer;
    cpprof_labels_set_current(outside);
    end_scope(L);
    cpprof_labels_free(scope->set);
    scope->set = NULL;
    if (status != 0 && status != LUA_YIELD)
        return lua_error(L);
    return lua_gettop(L) - 2;
}

#if LUA_VERSION_NUM >= 503
static int
go_on(lua_State *L, int status, lua_KContext unused)
{
    return finish(L, status);
}
#endif

int
labels_call(lua_State *L)
{
    struct cpprof_label labels[LABELS_MAX];
    struct cpprof_error error;
    struct scope *scope;
    struct state *s;
    size_t n;

    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    n = read_labels(L, 1, labels);
    scope = push_scope(L);
    lua_insert(L, 2); /* table, scope, fn, ... */
    if (cpprof_labels_merge(cpprof_labels_current(), labels, n, &scope->set,
                            &error) != CPPROF_OK)
        return luaL_error(L, "cpprof.labels: %s", error.text);
    begin_scope(L);
    scope->before = cpprof_labels_set_current(scope->set);
    s = state_of(L);
    if (s) {
        s->uses_labels = true;
        scope->outer = s->own_labels;
        s->own_labels = scope->set;
    }
#if LUA_VERSION_NUM >= 503
    return finish(L,
                  lua_pcallk(L, lua_gettop(L) - 3, LUA_MULTRET, 0, 0, go_on));
#else
    return finish(L, lua_pcall(L, lua_gettop(L) - 3, LUA_MULTRET, 0));
#endif
}

/* ---- coroutines -------------------------------------------------------- */

/* Only a coroutine that yielded is in a call still. */
void
labels_enter(lua_State *L, struct state *s)
{
    const struct scope *scope;
    lua_State *co;

    if (!lua_isthread(L, -1) || !push_scopes(L)) {
        lua_pop(L, 1);
        return;
    }
    lua_pushvalue(L, -2);
    lua_rawget(L, -2);
    co = lua_tothread(L, -3);
    scope = lua_touserdata(L, -1);
    s->own_labels =
        co && scope && lua_status(co) == LUA_YIELD ? scope->set : NULL;
    lua_pop(L, 3);
    if (s->own_labels)
        cpprof_labels_set_current(s->own_labels);
}
