/* SPDX-License-Identifier: MIT */
/*
 * cpprof.profile: what a program acquires and gives back, by any value of Lua.
 * The values are kept, as Go keeps them, in a table that has a byte of memory
 * for each; to the library it is the address of that. So equal is what Lua
 * calls equal, and states that share a profile do not meet. A state that is
 * closed takes its values out: their addresses come again. Stacks are those of
 * the native code.
 *
 * cpprof.heap: the heap profile of the process.
 */
#include "profiles.h"

#include "fields.h"

#include <cpprof/heap.h>
#include <cpprof/profiles.h>
#include <cpprof/writer.h>

#include <stdio.h>

#define TYPE "cpprof.profile"

/* Frames of this file in front of a stack: the method. */
#define OWN_FRAMES 1

int
push_failure(lua_State *L, const struct cpprof_error *error)
{
    lua_pushnil(L);
    lua_pushstring(L, error->text);
    return 2;
}

bool
writer_of(lua_State *L, int index, const char *otherwise,
          struct cpprof_writer *writer, struct cpprof_error *error)
{
    const char *path = field_text(L, index, "out", otherwise);
    enum cpprof_status status;

    if (!lua_istable(L, index))
        path = luaL_optstring(L, index, otherwise);
    status = cpprof_writer_to_path(path, writer, error);
    lua_pop(L, 1);
    return status == CPPROF_OK;
}

static int
done(lua_State *L, enum cpprof_status status, const struct cpprof_error *error)
{
    if (status != CPPROF_OK)
        return push_failure(L, error);
    lua_pushboolean(L, 1);
    return 1;
}

/* ---- profiles ---------------------------------------------------------- */

static struct cpprof_profile *
check_profile(lua_State *L)
{
    struct cpprof_profile **object = luaL_checkudata(L, 1, TYPE);

    return *object;
}

/* A key of the registry: a table of the values by profile; false, once the
 * state closes. */
static const char all_key;

/* value -> its byte, of one profile; false: the state closes, and nothing is
 * pushed. */
static bool
push_values(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &all_key);
    if (!lua_istable(L, -1)) {
        lua_pop(L, 1);
        return false;
    }
    lua_pushlightuserdata(L, check_profile(L));
    lua_rawget(L, -2);
    if (!lua_istable(L, -1)) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushlightuserdata(L, check_profile(L));
        lua_pushvalue(L, -2);
        lua_rawset(L, -4);
    }
    lua_remove(L, -2);
    return true;
}

/* The finalizer of a value that lives as long as the state. Finalizers of older
 * values run later, and find no table. */
static int
close_values(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &all_key);
    if (!lua_istable(L, -1))
        return 0;
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        struct cpprof_profile *profile = lua_touserdata(L, -2);

        if (!lua_istable(L, -1))
            continue;
        for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
            cpprof_profile_remove(profile, lua_touserdata(L, -1));
    }
    lua_pushboolean(L, 0);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &all_key);
    return 0;
}

/* Once in a state. The guard is in the table as well, under true. */
static void
open_values(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &all_key);
    if (lua_isnil(L, -1)) {
        lua_newtable(L);
        lua_pushboolean(L, 1);
        lua_newuserdata(L, 1);
        lua_newtable(L);
        lua_pushcfunction(L, close_values);
        lua_setfield(L, -2, "__gc");
        lua_setmetatable(L, -2);
        lua_rawset(L, -3);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &all_key);
    }
    lua_pop(L, 1);
}

static int
push_object(lua_State *L, struct cpprof_profile *profile)
{
    struct cpprof_profile **object = lua_newuserdata(L, sizeof *object);

    *object = profile;
    luaL_getmetatable(L, TYPE);
    lua_setmetatable(L, -2);
    return 1;
}

static int
profile_new(lua_State *L)
{
    struct cpprof_profile *profile;
    struct cpprof_error error;

    if (cpprof_profile_new(luaL_checkstring(L, 1), &profile, &error) !=
        CPPROF_OK)
        return push_failure(L, &error);
    return push_object(L, profile);
}

static int
profile_lookup(lua_State *L)
{
    struct cpprof_profile *profile =
        cpprof_profile_lookup(luaL_checkstring(L, 1));

    if (!profile) {
        lua_pushnil(L);
        return 1;
    }
    return push_object(L, profile);
}

/* Add the value at index 2 to the table of values on top. True: it is new. */
static bool
find_or_make(lua_State *L, const void **address)
{
    lua_pushvalue(L, 2);
    lua_rawget(L, -2);
    *address = lua_touserdata(L, -1);
    lua_pop(L, 1);
    if (*address)
        return false;
    lua_pushvalue(L, 2);
    *address = lua_newuserdata(L, 1);
    lua_rawset(L, -3);
    return true;
}

static void
forget(lua_State *L)
{
    lua_pushvalue(L, 2);
    lua_pushnil(L);
    lua_rawset(L, -3);
}

static int
profile_add(lua_State *L)
{
    struct cpprof_profile *profile = check_profile(L);
    struct cpprof_error error;
    enum cpprof_status status;
    const void *address;
    bool is_new;

    luaL_argcheck(L, !lua_isnoneornil(L, 2), 2, "value expected");
    luaL_argcheck(L, lua_rawequal(L, 2, 2), 2, "not a number, equal to none");
    if (!push_values(L)) {
        lua_pushnil(L);
        lua_pushliteral(L, "the state is being closed");
        return 2;
    }
    is_new = find_or_make(L, &address);
    status = cpprof_profile_add(profile, address, OWN_FRAMES, &error);
    if (status != CPPROF_OK && is_new)
        forget(L);
    return done(L, status, &error);
}

static int
profile_remove(lua_State *L)
{
    struct cpprof_profile *profile = check_profile(L);

    luaL_checkany(L, 2);
    if (!push_values(L))
        return 0;
    lua_pushvalue(L, 2);
    lua_rawget(L, -2);
    if (lua_isuserdata(L, -1)) {
        cpprof_profile_remove(profile, lua_touserdata(L, -1));
        lua_pop(L, 1);
        forget(L);
    }
    return 0;
}

static int
profile_count(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)cpprof_profile_count(check_profile(L)));
    return 1;
}

static int
profile_name(lua_State *L)
{
    lua_pushstring(L, cpprof_profile_name(check_profile(L)));
    return 1;
}

static const struct whole debug_levels = {0, 2};

/* profile:write(path), profile:write{out=, debug=, labels=} */
static int
profile_write(lua_State *L)
{
    static const char *const names[] = {"out", "debug", "labels", NULL};
    struct cpprof_profile *profile = check_profile(L);
    struct cpprof_profile_options options = {.size = sizeof options};
    struct cpprof_writer writer;
    struct cpprof_error error;
    char path[160];

    fields_check(L, 2, names);
    options.debug = (int32_t)field_whole(L, 2, "debug", 0, &debug_levels);
    if (field_flag(L, 2, "labels", false))
        options.flags |= CPPROF_FLAG_LABELS;
    snprintf(path, sizeof path, "%s.%s", cpprof_profile_name(profile),
             options.debug ? "txt" : "pb.gz");
    if (!writer_of(L, 2, path, &writer, &error))
        return push_failure(L, &error);
    return done(L, cpprof_profile_write(profile, &writer, &options, &error),
                &error);
}

/* heap{rate = bytes} sets the rate, heap{out = path, ...} writes the profile.
 */
static int
heap(lua_State *L)
{
    static const char *const names[] = {"rate",   "out",   "peak",
                                        "labels", "debug", NULL};
    static const struct whole rates = {0, (int64_t)1 << 53};
    struct cpprof_heap_options options = {.size = sizeof options};
    struct cpprof_writer writer;
    struct cpprof_error error;
    int64_t rate;
    bool writes;

    luaL_checktype(L, 1, LUA_TTABLE);
    fields_check(L, 1, names);
    rate = field_whole(L, 1, "rate", -1, &rates);
    if (rate >= 0)
        cpprof_heap_set_rate(rate);
    lua_getfield(L, 1, "out");
    writes = !lua_isnil(L, -1);
    lua_pop(L, 1);
    if (!writes)
        return done(L, CPPROF_OK, NULL);
    options.debug = (int32_t)field_whole(L, 1, "debug", 0, &debug_levels);
    options.flags =
        (field_flag(L, 1, "peak", false) ? CPPROF_FLAG_PEAK : 0) |
        (field_flag(L, 1, "labels", false) ? CPPROF_FLAG_LABELS : 0);
    if (!writer_of(L, 1, NULL, &writer, &error))
        return push_failure(L, &error);
    return done(L, cpprof_heap_write(&writer, &options, &error), &error);
}

void
profiles_open(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"add", profile_add},     {"remove", profile_remove},
        {"count", profile_count}, {"name", profile_name},
        {"write", profile_write}, {NULL, NULL}};
    static const luaL_Reg functions[] = {
        {"new", profile_new}, {"lookup", profile_lookup}, {NULL, NULL}};

    open_values(L);
    if (luaL_newmetatable(L, TYPE)) {
        push_library(L, methods);
        lua_setfield(L, -2, "__index");
    }
    lua_pop(L, 1);
    push_library(L, functions);
    lua_setfield(L, -2, "profile");
    lua_pushcfunction(L, heap);
    lua_setfield(L, -2, "heap");
}
