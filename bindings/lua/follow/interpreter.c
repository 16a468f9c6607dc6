/* SPDX-License-Identifier: MIT */
/*
 * Lua, told to the library once in a process. LuaJIT can be asked for no stack
 * at any moment: it is assembly code without a frame for each call, and what
 * runs as machine code is not in its stack.
 *
 * Which native code is the interpreter's own is learnt by example: in a state
 * of our own, which nobody else sees, functions are called in the ways there
 * are, and the innermost has the library look down the native stack. Known are
 * then the run loop and what stands between it, C functions and the API: for
 * calls, metamethods, iterators, coroutines; our own functions for these, too.
 *
 * What does work of its own is left as it is, such as concatenation and the
 * collector, which call metamethods seldom. Without memory, or where the stack
 * cannot be walked, nothing is learnt and stacks stay native.
 */
#include "interpreter.h"

#include "../names/functions.h"
#include "../state/running.h"
#include "coroutines.h"
#include "stacks.h"
#include "ticks.h"

#include <pthread.h>

/* ---- the run loop ------------------------------------------------------ */

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

/* Used by the one thread that learns. */
static const void *high; /* on the C stack, above all of it */
static bool has_looked;
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
    cpprof_vm_learn_run_loop(lua_vm, (const void *)probe, PCALL);
    return 0;
}

static int
create(lua_State *L)
{
    lua_State *co = lua_newthread(L);

    lua_pushvalue(L, 1);
    lua_xmove(L, co, 1);
    return 1;
}

static int
resume(lua_State *L)
{
    lua_State *co;
    int status;

    create(L);
    co = lua_tothread(L, -1);
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

/* ORDER: those of the script. */
static const lua_CFunction arguments[] = {probe,  relay,  resume,   yield,
                                          create, litter, is_learnt};
#define N_FUNCTIONS ((int)(sizeof arguments / sizeof *arguments))

/* The arguments of the script: the functions, two objects, and the metatable of
 * both. */
static void
push_arguments(lua_State *L)
{
    int i;

    for (i = 0; i < N_FUNCTIONS; i++)
        lua_pushcfunction(L, arguments[i]);
    lua_newtable(L);
    lua_newtable(L);
    lua_newtable(L);
    for (i = 3; i > 1; i--) {
        lua_pushvalue(L, -1);
        lua_setmetatable(L, -1 - i);
    }
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
    lua_call(L, N_FUNCTIONS + 3, 0);
    return 0;
}

/* Learn them, once in a process. */
static void
learn_run_loop(void)
{
    lua_State *L = luaL_newstate();

    if (!L)
        return;
    high = __builtin_frame_address(0);
    lua_pushcfunction(L, run);
    lua_pcall(L, 0, 0, 0);
    lua_close(L);
}

/* ---- the interpreter --------------------------------------------------- */

static const struct cpprof_vm_ops ops = {
    .size = sizeof ops,
    .name = "lua",
    .flags = CPPROF_VM_FINDS,
    .stack = walk_stack,
    .describe = describe_function,
    .interrupt = tick_interrupt,
    .peek = peek_stack,
};

static void
register_vm(void)
{
    static struct cpprof_vm_ops own;

    own = ops;
    if (is_luajit())
        own.peek = NULL;
    if (cpprof_vm_new(&own, &lua_vm, NULL) != CPPROF_OK)
        return;
    if (own.peek)
        learn_run_loop();
    tick_begin();
    pthread_atfork(NULL, NULL, states_forked);
}

struct state *
interpreter_open(lua_State *L)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, register_vm);
    return state_open(L);
}
