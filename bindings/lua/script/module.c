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
#include "debugging.h"
#include "fields.h"
#include "init.h"
#include "profiles.h"

#include <cpprof/writer.h>

#include <stdlib.h>

#define DEFAULT_OUT "lua.pb.gz"

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
    uint64_t host_ns = __atomic_exchange_n(&s->host_ns, 0, __ATOMIC_ACQ_REL);

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

int
luaopen_cpprof(lua_State *L)
{
    static const luaL_Reg functions[] = {{"start", start},
                                         {"stop", stop},
                                         {"labels", labels_call},
                                         {NULL, NULL}};
    struct state *s = interpreter_open(L);

    init_give_back();
    coroutines_open(L);
    debugging_open(L);
    push_library(L, functions);
    profiles_open(L);
    if (s) {
        hook_all(s, L);
        cpprof_vm_span_begin(s->thread);
    }
    return 1;
}
