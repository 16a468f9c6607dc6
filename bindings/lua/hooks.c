/* SPDX-License-Identifier: MIT */
/*
 * The debug hooks. A hook of the program's own stays in force: ours stands in
 * front of it, asks for its events as well and passes them on.
 *
 * A tick asks for the next of three events. An instruction: the line that runs.
 * A return: the C function that slept is still there, on its caller's line. A
 * call: what a C function called back to, so the time was the C function's.
 */
#include "state.h"

#define TICK_MASK (LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT)
#define SPAN_MASK (LUA_MASKCALL | LUA_MASKRET)

static void
on_tick(lua_State *L, lua_Debug *ar);
static void
on_span(lua_State *L, lua_Debug *ar);

static bool
is_ours(lua_Hook hook)
{
    return hook == on_tick || hook == on_span;
}

static void
note_program(struct state *s, lua_State *L)
{
    lua_Hook hook = lua_gethook(L);

    if (is_ours(hook))
        return;
    s->program.hook = hook;
    s->program.mask = hook ? lua_gethookmask(L) : 0;
    s->program.count = hook ? lua_gethookcount(L) : 0;
}

/* A count of the program's would begin anew at every change of the hook, and
 * with it its limit of instructions: then its own events are the places to
 * sample, and the hook stays. */
void
hook_for_tick(struct state *s, lua_State *L)
{
    note_program(s, L);
    if (!(s->program.mask & LUA_MASKCOUNT))
        lua_sethook(L, on_tick, TICK_MASK | s->program.mask, 1);
    else if (!is_ours(lua_gethook(L)))
        lua_sethook(L, on_tick, s->program.mask, s->program.count);
}

void
hook_for_spans(struct state *s, lua_State *L)
{
    note_program(s, L);
    if (lua_gethook(L) != on_span)
        lua_sethook(L, on_span, SPAN_MASK | s->program.mask, s->program.count);
}

static void
unhook(struct state *s, lua_State *L)
{
    lua_sethook(L, s->program.hook, s->program.mask, s->program.count);
}

static int
mask_of(int event)
{
    switch (event) {
    case LUA_HOOKCALL:
    case LUA_HOOKTAILCALL:
        return LUA_MASKCALL;
    case LUA_HOOKLINE:
        return LUA_MASKLINE;
    case LUA_HOOKCOUNT:
        return LUA_MASKCOUNT;
    default:
        return LUA_MASKRET;
    }
}

/* The last thing that is done: it may raise an error, or yield. */
static void
pass_on(const struct program_hook *program, lua_State *L, lua_Debug *ar)
{
    if (program->hook && program->mask & mask_of(ar->event))
        program->hook(L, ar);
}

/* The time up to a call was the caller's. */
static void
set_place(struct state *s, lua_State *L, const lua_Debug *ar)
{
    s->at = L;
    s->level = ar->event == LUA_HOOKCALL || ar->event == LUA_HOOKTAILCALL;
    s->after_tail_call = ar->event == LUA_HOOKTAILCALL;
}

static void
on_tick(lua_State *L, lua_Debug *ar)
{
    struct state *s = state_of(L);
    struct program_hook program;

    if (!s) {
        lua_sethook(L, NULL, 0, 0);
        return;
    }
    program = s->program;
    if (s->is_left) {
        s->is_left = false;
        cpprof_vm_enter(s->thread);
    }
    if (!(program.mask & LUA_MASKCOUNT))
        unhook(s, L);
    if (__atomic_exchange_n(&s->is_armed, 0, __ATOMIC_ACQ_REL)) {
        set_place(s, L, ar);
        cpprof_vm_poll(s->thread);
        s->at = NULL;
    }
    pass_on(&program, L, ar);
}

/* Is there something below the function that returns? */
static bool
has_caller(struct state *s, lua_State *L)
{
    lua_Debug below;

    return s->resumed || lua_getstack(L, 1, &below);
}

static void
on_span(lua_State *L, lua_Debug *ar)
{
    struct state *s = state_of(L);
    struct program_hook program;

    if (!s) {
        lua_sethook(L, NULL, 0, 0);
        return;
    }
    program = s->program;
    if (!__atomic_load_n(&cpprof_vm_spans, __ATOMIC_RELAXED))
        unhook(s, L);
    else if (mask_of(ar->event) & SPAN_MASK) {
        set_place(s, L, ar);
        if (s->level || has_caller(s, L))
            cpprof_vm_span_next_(s->thread);
        else
            cpprof_vm_span_end_(s->thread);
        s->at = NULL;
    }
    pass_on(&program, L, ar);
}
