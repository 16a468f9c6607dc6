/* SPDX-License-Identifier: MIT */
/*
 * Reads the fields of a table argument: each by name and type, with a Lua
 * error that names the field when it is wrong, and an error for fields that
 * nobody knows.
 */
#include "fields.h"

#include <stdio.h>

static void
refuse(lua_State *L, int index, const char *name, const char *why)
{
    luaL_argerror(L, index, lua_pushfstring(L, "%s %s", name, why));
}

void
fields_check(lua_State *L, int index, const char *const *names)
{
    size_t i;

    if (!lua_istable(L, index))
        return;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_argerror(L, index, "a field has no name");
        for (i = 0; names[i] && strcmp(names[i], lua_tostring(L, -2)); i++) {
        }
        if (!names[i])
            refuse(L, index, lua_tostring(L, -2), "is no field");
    }
}

/* The field on top, whatever it is. */
static void
push_field(lua_State *L, int index, const char *name)
{
    if (lua_istable(L, index))
        lua_getfield(L, index, name);
    else
        lua_pushnil(L);
}

int64_t
field_whole(lua_State *L, int index, const char *name, int64_t otherwise,
            const struct whole *bounds)
{
    int64_t value = otherwise;
    lua_Number number;
    char why[80];

    push_field(L, index, name);
    if (!lua_isnil(L, -1)) {
        number = lua_tonumber(L, -1);
        if (!lua_isnumber(L, -1) || !(number >= (lua_Number)bounds->least) ||
            !(number <= (lua_Number)bounds->most) ||
            number != (lua_Number)(int64_t)number) {
            snprintf(why, sizeof why, "is not a whole number from %lld to %lld",
                     (long long)bounds->least, (long long)bounds->most);
            refuse(L, index, name, why);
        }
        value = (int64_t)number;
    }
    lua_pop(L, 1);
    return value;
}

bool
field_flag(lua_State *L, int index, const char *name, bool otherwise)
{
    bool value;

    push_field(L, index, name);
    value = lua_isnil(L, -1) ? otherwise : lua_toboolean(L, -1);
    lua_pop(L, 1);
    return value;
}

int
field_word(lua_State *L, int index, const char *name, const char *const *words)
{
    int i = 0;

    push_field(L, index, name);
    if (!lua_isnil(L, -1)) {
        const char *word =
            lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";

        while (words[i] && strcmp(words[i], word))
            i++;
        if (!words[i])
            refuse(L, index, name,
                   lua_pushfstring(L, "is none of %s, %s, %s", words[0],
                                   words[1], words[2]));
    }
    lua_pop(L, 1);
    return i;
}

const char *
field_text(lua_State *L, int index, const char *name, const char *otherwise)
{
    push_field(L, index, name);
    if (lua_isnil(L, -1))
        return otherwise;
    if (!lua_isstring(L, -1))
        refuse(L, index, name, "is not a string");
    return lua_tostring(L, -1);
}
