/* SPDX-License-Identifier: MIT */
/*
 * What a state that was closed leaves in the process: of the values that it
 * kept in a profile of its own, nothing. Their memory is another state's soon,
 * whose values were refused as duplicates then. And a coroutine that was closed
 * under labels: whoever runs in it next has not those, which are freed.
 */
#include "script/module.h"
#include "state/state.h"
#include <cpprof/labels.h>
#include <cpprof/profiles.h>

#include <lualib.h>
#include <stdio.h>

#define N_STATES 6
#define N_VALUES 50

static const char script[] =
    "local c = require 'cpprof'\n"
    "local p = c.profile.lookup 'mine' or assert(c.profile.new 'mine')\n"
    "for i = 1, 50 do assert(p:add(i)) end\n"
    "p:remove(1) assert(p:add 'one')\n"
    "kept = setmetatable({}, {__gc = function()\n"
    "  p:remove(2) late, why = p:add 'late' end})\n";

/* Finalized after the module's own values. */
static const char early[] =
    "early = setmetatable({}, {__gc = function()\n"
    "  local p = require 'cpprof'.profile.lookup 'mine'\n"
    "  local ok, why = p:add 'early'\n"
    "  if not ok then tell(why) end p:remove 'early' end})\n";

static const char under_labels[] =
    "local c = require 'cpprof'\n"
    "local co = coroutine.create(function()\n"
    "  c.labels({a = 'b'}, coroutine.yield) end)\n"
    "coroutine.resume(co)\n"
    "reset(co)\n"
    "collectgarbage() collectgarbage()\n"
    "assert(coroutine.resume(co))\n";

static uint32_t n_failed, n_told, n_labelled;

static int
look(lua_State *L)
{
    n_labelled += cpprof_labels_current() != NULL;
    return 0;
}

/* Closed, and given to another function, as hosts do that keep a pool. */
static int
reset(lua_State *L)
{
    lua_State *co = lua_tothread(L, 1);

    lua_resetthread(co);
    lua_pushcfunction(co, look);
    return 0;
}

static int
tell(lua_State *L)
{
    n_told += !strcmp(lua_tostring(L, 1), "the state is being closed");
    return 0;
}

static void
run(lua_State *L, const char *text)
{
    if (!luaL_dostring(L, text))
        return;
    printf("# %s\n", lua_tostring(L, -1));
    n_failed++;
}

static void
check(bool is_right, const char *name, uint32_t number)
{
    static uint32_t n_checks;

    printf("%sok %u - %s: %u\n", is_right ? "" : "not ", ++n_checks, name,
           number);
    n_failed += !is_right;
}

int
main(void)
{
    uint32_t n_whole = 0, n_left = 0;
    struct cpprof_profile *mine;
    int i;

    for (i = 0; i < N_STATES; i++) {
        lua_State *L = luaL_newstate();

        luaL_openlibs(L);
        lua_register(L, "tell", tell);
        run(L, early);
        luaL_requiref(L, "cpprof", luaopen_cpprof, 0);
        lua_settop(L, 0);
        run(L, script);
        lua_register(L, "reset", reset);
        run(L, under_labels);
        mine = cpprof_profile_lookup("mine");
        n_whole += mine && cpprof_profile_count(mine) == N_VALUES;
        lua_close(L);
        n_left += mine ? (uint32_t)cpprof_profile_count(mine) : 1;
    }
    check(n_whole == N_STATES, "each state has all values it added", n_whole);
    check(n_left == 0, "none is left when it is closed", n_left);
    check(n_told == N_STATES, "no value is taken while it closes", n_told);
    check(n_labelled == 0, "a closed coroutine has no labels", n_labelled);
    puts("1..4");
    return n_failed != 0;
}
