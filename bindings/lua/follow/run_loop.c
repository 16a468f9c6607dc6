/* SPDX-License-Identifier: MIT */
/*
 * Which native code is the interpreter's own, by example: in a state of our
 * own, which nobody else sees, functions are called in the ways there are, and
 * the innermost has the library look down the native stack. Known are then the
 * run loop and what stands between it, C functions and the API: for calls,
 * metamethods, iterators, coroutines; our own functions for these, too.
 *
 * What does work of its own is left as it is, such as concatenation and the
 * collector, which call metamethods seldom. Without memory, or where the stack
 * cannot be walked, nothing is learnt and stacks stay native.
 */
#include "run_loop.h"

#include "../names/functions.h"
#include "../state/running.h"
#include "coroutines.h"

/* Where a function of the library begins. */
#define ADDRESS(function) ((const void *)(uintptr_t)(function))

#if LUA_VERSION_NUM >= 502
#define PCALL ADDRESS(lua_pcallk)
#else
#define PCALL ADDRESS(lua_pcall)
#endif

static const char script[] =
    "local probe, relay, resume, yield, create, "
    "litter, is_learnt, object, other, meta = ...\n"
    "local function inner() probe() return 1 end\n"
    "local function outer() local x = inner() return x end\n"
    "relay(outer)\n"
    "resume(outer)\n"
    "resume(function() yield() inner() end)\n"
    "if coroutine.wrap then\n"
    " coroutine.wrap(outer)()\n"
    " coroutine.resume(create(outer))\n"
    "end\n"
    "meta.__index = inner; meta.__newindex = inner\n"
    "meta.__add = inner; meta.__unm = inner; meta.__len = inner\n"
    "meta.__lt = inner; meta.__le = inner; meta.__eq = inner\n"
    "meta.__call = inner; meta.__close = inner\n"
    "local x\n"
    "x = object.x; object.x = 1; x = object + 1; x = -object; x = #object\n"
    "x = object < other; x = object <= other; x = object == other\n"
    "x = object()\n"
    "for i = 1, 20000 do\n"
    " x = {}\n"
    " if i % 100 == 1 then litter() end\n"
    " if is_learnt() then break end\n"
    "end\n"
    "for _ in function(_, i) if not i then inner() return 1 end end do end\n"
#if LUA_VERSION_NUM >= 504
    "do local y <close> = object end\n"
#endif
    ;

/* Of the one thread that learns. */
static const void *high; /* on the C stack, above all of it */
static bool has_looked;
static bool has_failed;
static bool has_collected;

static int
relay(lua_State *L)
{
    lua_call(L, 0, 0);
    return 0;
}

static int
probe(lua_State *L)
{
    if (!has_looked)
        running_learn(L, high);
    has_looked = true;
    if (!cpprof_vm_learn_run_loop(lua_vm, (const void *)probe, PCALL))
        has_failed = true;
    return 0;
}

static int
resume(lua_State *L)
{
    lua_State *co = lua_newthread(L);
    int status;

    lua_pushvalue(L, 1);
    lua_xmove(L, co, 1);
    do {
#if HAVE_LUA54
        int n;

        status = lua_resume(co, L, 0, &n);
#else
        status = lua_resume(co, 0);
#endif
    } while (status == LUA_YIELD);
    return 0;
}

static int
yield(lua_State *L)
{
    return lua_yield(L, 0);
}

static int
create(lua_State *L)
{
    lua_State *co = lua_newthread(L);

    lua_pushvalue(L, 1);
    lua_xmove(L, co, 1);
    return 1;
}

/* Called by the collector for an object that is not needed any more. */
static int
probe_collector(lua_State *L)
{
    if (cpprof_vm_learn_collector(lua_vm))
        has_collected = true;
    return 0;
}

static int
litter(lua_State *L)
{
    lua_newuserdata(L, 1);
    lua_newtable(L);
    lua_pushcfunction(L, probe_collector);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    return 0;
}

static int
is_learnt(lua_State *L)
{
    lua_pushboolean(L, has_collected);
    return 1;
}

/* The arguments of the script. */
static void
push_arguments(lua_State *L)
{
    int top = lua_gettop(L);

    lua_pushcfunction(L, probe);
    lua_pushcfunction(L, relay);
    lua_pushcfunction(L, resume);
    lua_pushcfunction(L, yield);
    lua_pushcfunction(L, create);
    lua_pushcfunction(L, litter);
    lua_pushcfunction(L, is_learnt);
    lua_newtable(L);
    lua_newtable(L);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_setmetatable(L, top + 8);
    lua_pushvalue(L, -1);
    lua_setmetatable(L, top + 9);
}

static int
run(lua_State *L)
{
    if (luaL_loadbuffer(L, script, sizeof script - 1, "=learn"))
        return lua_error(L);
    lua_newtable(L);
    lua_setglobal(L, "coroutine");
    coroutines_open(L);
    push_arguments(L);
    lua_call(L, 10, 0);
    return 0;
}

bool
run_loop_learn(void)
{
    lua_State *L = luaL_newstate();

    if (!L)
        return false;
    high = __builtin_frame_address(0);
    lua_pushcfunction(L, run);
    if (lua_pcall(L, 0, 0, 0))
        has_failed = true;
    lua_close(L);
    return !has_failed;
}
