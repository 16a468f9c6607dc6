/* SPDX-License-Identifier: MIT */
/*
 * The debug hooks. A hook of the program's own stays in force: ours stands in
 * front of it, asks for its events as well and passes them on.
 *
 * A tick asks for the next of three events. An instruction: the line that runs.
 * A return: the C function that slept is still there, on its caller's line. A
 * call: what a C function called back to, so the time was the C function's.
 */
#include "hooks.h"

#include "../../counter.h"
#include "../state/programs.h"
#include "../state/state.h"
#include "stacks.h"

#include <time.h>

#define TICK_MASK (LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT)
#define SPAN_MASK (LUA_MASKCALL | LUA_MASKRET)

/* Tunable: the calls and returns for which the hook of a tick stays after a
 * sleep, at some 50 ns each. If it is larger, the next sleep is seen also in
 * scripts that do more until then. The number falls quickly when nobody sleeps
 * between ticks. */
#define STAYS       200000
#define STAYS_SHIFT 3
/* ... and a host that was away for so long has slept. */
#define AWAY_NS 5000000

static void
on_tick(lua_State *L, lua_Debug *ar);
static void
on_span(lua_State *L, lua_Debug *ar);

static bool
is_ours(lua_Hook hook)
{
    return hook == on_tick || hook == on_span;
}

bool
hook_is_for_spans(lua_State *L)
{
    return lua_gethook(L) == on_span && lua_gethookmask(L);
}

/* A hook that counts for all coroutines, as LuaJIT's does. */
static lua_State *
owner(struct state *s, lua_State *L)
{
    return is_luajit() ? s->main : L;
}

/* At an event: most programs have none. */
static inline struct program_hook
program_now(struct state *s, lua_State *L)
{
    if (s->programs.is_full)
        programs_grow(s);
    if (!s->programs.n_used)
        return (struct program_hook){.of = L};
    return program_of(s, owner(s, L));
}

/* Read the program's hook of L; false: not now. The program may be about to set
 * one: it stores the function first and the events last. */
static bool
note_program(struct state *s, lua_State *L, struct program_hook *program)
{
    lua_State *of = owner(s, L);
    lua_Hook hook = lua_gethook(L);

    if (is_ours(hook)) {
        *program = program_of(s, of);
        return true;
    }
    *program = (struct program_hook){of, hook, 0, 0};
    if (hook) {
        program->mask = lua_gethookmask(L);
        program->count = lua_gethookcount(L);
    }
    return (!hook || program->mask) && program_put(s, program);
}

static void
set(lua_State *L, lua_Hook hook, int mask, int count)
{
    if (lua_gethook(L) != hook || lua_gethookmask(L) != mask ||
        lua_gethookcount(L) != count)
        lua_sethook(L, hook, mask, count);
}

/* If the program's hook counts instructions, every change of the hook would
 * begin its count again, and with it the program's limit. So then we sample at
 * the program's own events, and the hook stays. */
void
hook_for_tick(struct state *s, lua_State *L)
{
    struct program_hook program;

    if (!note_program(s, L, &program))
        return;
    if (!(program.mask & LUA_MASKCOUNT))
        set(L, on_tick, TICK_MASK | program.mask, 1);
    else if (!is_ours(lua_gethook(L)))
        lua_sethook(L, on_tick, program.mask, program.count);
}

void
hook_for_spans(struct state *s, lua_State *L)
{
    struct program_hook program;

    if (!note_program(s, L, &program))
        return;
    counter_measure();
    if (!hook_is_for_spans(L))
        lua_sethook(L, on_span, SPAN_MASK | program.mask, program.count);
}

void
hook_for_instruction(struct state *s, lua_State *L)
{
    struct program_hook program;

    if (!note_program(s, L, &program))
        return;
    if (!(program.mask & LUA_MASKCOUNT))
        set(L, on_span, TICK_MASK | program.mask, 1);
    else if (!hook_is_for_spans(L))
        lua_sethook(L, on_span, SPAN_MASK | program.mask, program.count);
}

static bool
ticks_run(void)
{
    return load_relaxed(&cpprof_vm_running->ticks);
}

/* Sets it only if it is not set, because setting takes time in proportion to
 * the depth of the stack. */
static void
hook_to_stay(lua_State *L, const struct program_hook *program)
{
    set(L, on_tick, SPAN_MASK | program->mask, program->count);
}

static bool
has_to_stay(struct state *s)
{
    return ticks_run() && (s->stays || load_relaxed(&s->is_deaf));
}

void
hook_for_sleeps(struct state *s)
{
    s->stays = ticks_run() ? STAYS : 0;
}

void
hook_for_switch(struct state *s, lua_State *L)
{
    struct program_hook program;

    programs_grow(s);
    if (load_relaxed(&cpprof_vm_running->spans))
        hook_for_spans(s, L);
    else if (has_to_stay(s) && note_program(s, L, &program) &&
             !(program.mask & LUA_MASKCOUNT))
        hook_to_stay(L, &program);
}

void
hook_remove(struct state *s, lua_State *L)
{
    struct program_hook program;

    if (!is_ours(lua_gethook(L)))
        return;
    program = program_of(s, owner(s, L));
    lua_sethook(L, program.hook, program.mask, program.count);
    program_remove(s, owner(s, L));
}

void
hook_again(struct state *s, lua_State *L)
{
    if (ticks_run() && load_acquire(&s->is_armed))
        hook_for_tick(s, L);
    else
        hook_for_switch(s, L);
}

void
hook_for_new(struct state *s, lua_State *L, lua_State *co)
{
    struct program_hook program = program_of(s, L);

    if (is_ours(lua_gethook(co)))
        lua_sethook(co, program.hook, program.mask, program.count);
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

/* Is there something below the function that returns? */
static bool
has_caller(struct state *s, lua_State *L)
{
    lua_Debug below;

    return s->resumed || lua_getstack(L, 1, &below);
}

static bool
runs_function(lua_State *L)
{
    lua_Debug ar;

    return lua_getstack(L, 0, &ar);
}

/* The time before a call belongs to the caller, if there is one. */
static void
set_location(struct state *s, lua_State *L, const lua_Debug *ar)
{
    s->at = L;
    s->level = mask_of(ar->event) == LUA_MASKCALL && has_caller(s, L);
    s->after_tail_call = ar->event == LUA_HOOKTAILCALL;
}

/* No tick is answered while the host is at work. */
static void
come_back(struct state *s)
{
    s->is_left = false;
    cpprof_vm_thread_enter(s->thread);
    if (cpprof__now_ns(CLOCK_MONOTONIC) - s->left_ns >= AWAY_NS)
        hook_for_sleeps(s);
}

/* What mixed stacks need at a safepoint: functions have names then. */
static void
answer_mixed(struct state *s, lua_State *L, const lua_Debug *ar)
{
    set_location(s, L, ar);
    walk_names(s);
    cpprof_vm_thread_poll(s->thread);
    if (s->waiting && s->waiting->thread)
        cpprof_vm_thread_poll(s->waiting->thread);
    s->waiting = NULL;
    s->at = NULL;
}

static bool
is_mixed(struct state *s)
{
    return load_relaxed(&s->is_mixed) && swap_acq_rel(&s->is_mixed, 0);
}

/* A function that the host called has just begun: the time before was the
 * host's. */
static bool
is_first_call(struct state *s, lua_State *L, const lua_Debug *ar)
{
    return mask_of(ar->event) == LUA_MASKCALL && !has_caller(s, L) &&
           (L == s->running || !runs_function(s->running));
}

static void
answer_tick(struct state *s, lua_State *L, const lua_Debug *ar)
{
    /* Up to then the host is known to have been at work. */
    uint64_t host_ns = swap_acq_rel(&s->host_ns, 0);

    if (swap_acq_rel(&s->has_slept, 0))
        s->stays = STAYS;
    else if (s->stays)
        s->stays -= (s->stays + (1u << STAYS_SHIFT) - 1) >> STAYS_SHIFT;
    if (host_ns)
        cpprof_vm_thread_leave_out(s->thread, host_ns);
    if (swap_acq_rel(&s->was_elsewhere, 0))
        cpprof_vm_thread_no_answer(s->thread);
    if (is_first_call(s, L, ar))
        cpprof_vm_thread_leave_out(s->thread, 0);
    set_location(s, L, ar);
    cpprof_vm_thread_safepoint(s->thread);
    s->at = NULL;
}

/* The hook stays, or is removed until the next tick. While it stays, a sleep of
 * the host between its calls can be told from one in a function. */
static void
stay_or_go(struct state *s, lua_State *L, const lua_Debug *ar,
           const struct program_hook *program)
{
    struct cpprof_vm_thread *was;

    if (s->stays)
        s->stays--;
    if (!has_to_stay(s)) {
        hook_remove(s, L);
        return;
    }
    hook_to_stay(L, program);
    if (mask_of(ar->event) == LUA_MASKRET && L == s->running &&
        !has_caller(s, L)) {
        /* The host's time does not count until the hook sees the next call. */
        s->left_ns = cpprof__now_ns(CLOCK_MONOTONIC);
        was = cpprof_vm_thread_enter(NULL);
        s->is_left = was == s->thread;
        if (!s->is_left)
            cpprof_vm_thread_enter(was);
    }
}

static void
take_tick(struct state *s, lua_State *L, const lua_Debug *ar,
          const struct program_hook *program)
{
    if (swap_acq_rel(&s->is_armed, 0))
        answer_tick(s, L, ar);
    if (!(program->mask & LUA_MASKCOUNT))
        stay_or_go(s, L, ar, program);
    else if (!ticks_run())
        hook_remove(s, L);
}

static void
end_span(struct state *s, lua_State *L, const lua_Debug *ar)
{
    bool is_call = mask_of(ar->event) == LUA_MASKCALL;
    bool is_last = !is_call && !has_caller(s, L);

    if (!is_last && !counter_may_be_due(&s->looked))
        return;
    set_location(s, L, ar);
    if (is_last) {
        cpprof_vm_span_end_counted(s->thread);
        s->looked = 0;
    } else {
        cpprof_vm_span_next_counted(s->thread);
    }
    s->at = NULL;
}

static void
take_span(struct state *s, lua_State *L, const lua_Debug *ar,
          const struct program_hook *program)
{
    if (!load_relaxed(&cpprof_vm_running->spans))
        hook_remove(s, L);
    else if (mask_of(ar->event) & SPAN_MASK)
        end_span(s, L, ar);
    else if (!(program->mask & LUA_MASKCOUNT))
        lua_sethook(L, on_span, SPAN_MASK | program->mask, program->count);
}

/* ---- the hooks --------------------------------------------------------- */

static inline void
on_event(lua_State *L, lua_Debug *ar,
         void (*take)(struct state *s, lua_State *L, const lua_Debug *ar,
                      const struct program_hook *program))
{
    struct state *s = state_of(L);
    struct program_hook program;

    if (!s) {
        lua_sethook(L, NULL, 0, 0);
        return;
    }
    program = program_now(s, L);
    if (s->is_left)
        come_back(s);
    if (is_mixed(s))
        answer_mixed(s, L, ar);
    take(s, L, ar, &program);
    /* Last, because it may raise an error or yield. */
    if (program.hook && program.mask & mask_of(ar->event))
        program.hook(L, ar);
}

static void
on_tick(lua_State *L, lua_Debug *ar)
{
    on_event(L, ar, take_tick);
}

static void
on_span(lua_State *L, lua_Debug *ar)
{
    on_event(L, ar, take_span);
}
