/* SPDX-License-Identifier: MIT */
/*
 * require "cpprof": docs/lua.md tells what the functions are for.
 *
 * Failures that a program can meet are nil and a text; wrong arguments are
 * errors.
 */
#include "module.h"

#include "../follow/coroutines.h"
#include "../follow/hooks.h"
#include "../follow/interpreter.h"
#include "../follow/labels.h"
#include "../names/functions.h"
#include "../state/state.h"
#include "fields.h"
#include "profiles.h"

#include <cpprof/writer.h>

#include <stdlib.h>

#define DEFAULT_OUT "lua.pb.gz"

/* ORDER: modules.c */
#define FORMER_VARIABLE "CPPROF_LUA_INIT"

#if HAVE_LUA54
#define VARIABLE "LUA_INIT_5_4"
#else
#define VARIABLE "LUA_INIT"
#endif

/* ---- profiles ---------------------------------------------------------- */

/* A profile runs. The coroutines that resumed this one have no hook yet. */
static void
hook_all(struct state *s, lua_State *L)
{
    struct resumption *up;

    hook_for_sleeps(s);
    hook_for_switch(s, L);
    for (up = s->resumed; up; up = up->up)
        hook_for_switch(s, up->from);
}

static void
read_options(lua_State *L, struct cpprof_vm_options *options)
{
    static const char *const names[] = {"mode",  "hz",  "depth",
                                        "merge", "out", NULL};
    /* ORDER: enum cpprof_vm_mode */
    static const char *const modes[] = {"tick", "span", "cpu", NULL};
    static const struct whole hz = {1, 10000}, depth = {1, 1024};

    fields_check(L, 1, names);
    options->mode = (enum cpprof_vm_mode)field_word(L, 1, "mode", modes);
    options->rate_hz = (uint32_t)field_whole(L, 1, "hz", 0, &hz);
    options->max_depth = (uint32_t)field_whole(L, 1, "depth", 0, &depth);
    options->flags = field_flag(L, 1, "merge", true) ? CPPROF_FLAG_MERGE : 0;
    options->vm = lua_vm;
}

static int
start(lua_State *L)
{
    struct cpprof_vm_options options = {.size = sizeof options};
    struct state *s = interpreter_open(L);
    struct cpprof_writer writer;
    struct cpprof_error error;

    if (!s) {
        lua_pushnil(L);
        lua_pushliteral(L, "the state is being closed");
        return 2;
    }
    if (!lua_isnoneornil(L, 1))
        luaL_checktype(L, 1, LUA_TTABLE);
    read_options(L, &options);
    lua_settop(L, 1);
    if (!writer_of(L, lua_istable(L, 1) ? 1 : 2, DEFAULT_OUT, &writer,
                   &error) ||
        cpprof_vm_start(&writer, &options, &error) != CPPROF_OK)
        return push_failure(L, &error);
    hook_all(s, L);
    if (options.mode == CPPROF_VM_MODE_SPAN)
        cpprof_vm_span_begin(s->thread);
    lua_pushboolean(L, 1);
    return 1;
}

static void
begin_stop(struct state *s, lua_State *L)
{
    uint64_t host_ns = swap_acq_rel(&s->host_ns, 0);

    if (host_ns)
        cpprof_vm_thread_leave_out(s->thread, host_ns);
    s->at = L;
    s->level = 0;
    s->after_tail_call = false;
    cpprof_vm_span_end(s->thread);
}

static int
stop(lua_State *L)
{
    struct state *s = interpreter_open(L);
    enum cpprof_status status;
    struct cpprof_error error;

    if (s)
        begin_stop(s, L);
    status = cpprof_vm_stop(&error);
    if (s)
        s->at = NULL;
    if (status != CPPROF_OK)
        return push_failure(L, &error);
    lua_pushboolean(L, 1);
    return 1;
}

/* ---- what the program has and we replace -------------------------------- */

/* Call the original of debug.sethook or gethook, which is an upvalue. */
static int
call(lua_State *L)
{
    lua_CFunction *function = lua_touserdata(L, lua_upvalueindex(1));
    lua_State *co = lua_isthread(L, 1) ? lua_tothread(L, 1) : L;
    struct state *s = state_of(L);
    int n;

    if (!s)
        return (*function)(L);
    hook_remove(s, co);
    n = (*function)(L);
    hook_again(s, co);
    return n;
}

/* Two functions, so that profiles show their names. */
static int
sethook(lua_State *L)
{
    return call(L);
}

static int
gethook(lua_State *L)
{
    return call(L);
}

/* The table debug is on top. */
static void
replace(lua_State *L, const char *name, lua_CFunction own)
{
    lua_CFunction *kept, function;

    lua_getfield(L, -1, name);
    function = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    if (!function || function == own)
        return;
    kept = lua_newuserdata(L, sizeof *kept);
    *kept = function;
    lua_pushcclosure(L, own, 1);
    lua_setfield(L, -2, name);
}

/*
 * debug.sethook and debug.gethook act on the program's hook: ours is removed
 * during the call and set again after it. A program that keeps the original
 * functions, or sets a hook in C, is noticed by ticks.
 */
static void
replace_debug(lua_State *L)
{
    lua_getglobal(L, "debug");
    if (lua_istable(L, -1)) {
        replace(L, "sethook", sethook);
        replace(L, "gethook", gethook);
    }
    lua_pop(L, 1);
}

/* Make the variable what it was before libcpprof.so changed it. */
static void
give_back_init(void)
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

/* ---- the module -------------------------------------------------------- */

int
luaopen_cpprof(lua_State *L)
{
    static const luaL_Reg functions[] = {{"start", start},
                                         {"stop", stop},
                                         {"labels", labels_call},
                                         {NULL, NULL}};
    struct state *s = interpreter_open(L);

    give_back_init();
    coroutines_open(L);
    replace_debug(L);
    push_library(L, functions);
    profiles_open(L);
    if (s) {
        hook_all(s, L);
        cpprof_vm_span_begin(s->thread);
    }
    return 1;
}

/* ---- LUA_INIT ---------------------------------------------------------- */

static void
run(lua_State *L, const char *text, const char *name)
{
    int failed = *text == '@' ? luaL_loadfile(L, text + 1)
                              : luaL_loadbuffer(L, text, strlen(text), name);

    if (failed)
        lua_error(L);
    lua_call(L, 0, 0);
}

/* Called by the code that libcpprof.so put into LUA_INIT
 * (src/vm/load/modules.c): run what the variable contained, as lua.c does. */
int
cpprof_lua_init(lua_State *L)
{
    const char *text;

    give_back_init();
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
