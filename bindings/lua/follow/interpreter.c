/* SPDX-License-Identifier: MIT */
/*
 * Lua, told to the library once in a process. LuaJIT can be asked for no stack
 * at any moment: it is assembly code without a frame for each call, and what
 * runs as machine code is not in its stack.
 */
#include "interpreter.h"

#include "peek.h"
#include "run_loop.h"
#include "ticks.h"
#include "walk.h"

#include <pthread.h>

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
        run_loop_learn();
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
