/* SPDX-License-Identifier: MIT */
/*
 * What a script does, for mixed stacks and the lines of heap profiles: at a
 * safepoint, and in the midst of an allocation of Lua's or of what it calls.
 * Then nothing may be allocated, pushed or raised; so it is only these:
 *
 *   lua_getstack      follows the list of calls from L->ci. A call is linked
 *                     when it is whole, before that the allocation of it is
 *                     made (luaE_extendCI; in 5.1 growCI, whose realloc is told
 *                     of while the old array is there).
 *   lua_getinfo "Slutn"  reads the call, the closure in the stack at its
 *                     function, the prototype, and writes into lua_Debug.
 *                     Stack and list are replaced when the new ones are there
 *                     (luaD_reallocstack), or by a realloc that is told of
 *                     before; but Lua 5.4.6 makes offsets of its pointers
 *                     first: is_moving(), nothing is told then.
 *   lua_gethook, lua_sethook  may be called in signal handlers, says ldebug.c.
 *
 * The parser, the collector and other states leave the calls of this one as
 * they are; a collection in a call of ours is none. lua_close() unlinks all
 * calls, then runs finalizers, one of which ends the state's struct, before it
 * frees what runs here. The name of a call (n) looks through the code up to the
 * call: only where the function has no name yet.
 *
 * Names are those that functions.c remembers. For others the hook is set, and
 * the safepoint that follows, of the same function most often, knows them.
 */
#include "stacks.h"

#include "../names/functions.h"
#include "../state/state.h"
#include "ticks.h"

#include <stdio.h>

#define TAIL_CALLED_KEY 1 /* the hash of no function, except by chance */

/* Tunable: calls that are told, of one stack. lua_getstack goes to each from
 * the top, in some nanoseconds a step: 0.1 ms for all. More tells more of a
 * deep recursion, in four times the time for twice as many. */
#define LEVELS_MAX 250

/* The most bytes of a Lua stack: 16 for each slot, and some for errors. A Lua
 * stack below this address, as a program at a fixed address may have it, is not
 * read. */
#define OFFSET_MAX ((uintptr_t)LUAI_MAXSTACK * 17)

struct telling {
    struct state *s;
    cpprof_vm_visit *visit;
    void *ctx;
    unsigned n_levels;
    bool has_unnamed;
};

/* A level, and the level below it, which called it. */
struct level {
    lua_Debug ar;
    bool is_there;
};

/* Does Lua move its stack just now? Then 5.4.6 and later have in the place of
 * the pointer to a call's function, which comes first, how far from the stack's
 * begin that is. Read because lua_getinfo would follow it. */
static bool
is_moving(const lua_Debug *ar)
{
#if HAVE_LUA54
    return *(const uintptr_t *)(const void *)ar->i_ci < OFFSET_MAX;
#else
    return false;
#endif
}

static void
look_at(lua_State *L, int number, struct level *level)
{
    level->is_there =
        lua_getstack(L, number, &level->ar) && !is_moving(&level->ar);
    if (level->is_there)
        lua_getinfo(L, LUA_VERSION_NUM >= 502 ? "Slut" : "Slu", &level->ar);
}

static bool
is_c(const struct level *level)
{
    return *level->ar.what == 'C';
}

/* The run loop is entered by a call from C, and by the interpreter's own. */
static bool
is_entry(lua_State *L, struct level *level, const struct level *below)
{
    static const char *const own[] = {"metamethod", "for iterator", "hook"};
    size_t i;

    if (is_c(level))
        return false;
    if (!below->is_there || is_c(below))
        return true;
    lua_getinfo(L, "n", &level->ar);
    for (i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(level->ar.namewhat, own[i]))
            return true;
    return false;
}

/* The best name that needs no look-up. */
static void
use_location(lua_State *L, struct cpprof_vm_peek *frame, lua_Debug *ar,
             char *name)
{
    frame->flags |= CPPROF_VM_UNNAMED;
    frame->function.name = name;
    frame->function.file = file_of(ar);
    if (*ar->what == 'm')
        frame->flags &= ~CPPROF_VM_UNNAMED;
    else if (*ar->what != 'C')
        snprintf(name, FUNCTION_NAME_MAX, "function %s:%d", ar->short_src,
                 ar->linedefined);
    else if (!name_by_call(L, ar, name))
        strcpy(name, "[C]");
    if (ar->linedefined > 0)
        frame->function.start_line = ar->linedefined;
}

static bool
tell(struct telling *t, lua_State *L, struct level *level,
     const struct level *below)
{
    struct cpprof_vm_peek frame = {.flags = 0};
    lua_CFunction c_function = NULL;
    const struct function *known;
    char name[FUNCTION_NAME_MAX] = "";

    /* At a safepoint values can be pushed. Elsewhere a C function is known by
     * its name alone. */
    if (is_c(level) && t->s->at)
        c_function = c_function_at(L, &level->ar);
    known =
        function_known(&t->s->functions, L, &level->ar, c_function, &frame.key);
    if (is_c(level) && !c_function)
        frame.key = 0;
    if (known)
        describe_function(NULL, known, &frame.function);
    else
        use_location(L, &frame, &level->ar, name);
    if (level->ar.currentline > 0)
        frame.line = level->ar.currentline;
    if (is_entry(L, level, below))
        frame.flags |= CPPROF_VM_ENTRY;
    if (frame.flags & CPPROF_VM_UNNAMED)
        t->has_unnamed = true;
    return t->visit(t->ctx, &frame);
}

static bool
tell_tail_call(struct telling *t)
{
    struct cpprof_vm_peek frame = {.key = TAIL_CALLED_KEY};

    describe_function(NULL, &tail_called, &frame.function);
    return t->visit(t->ctx, &frame);
}

/* False: that was enough. */
static bool
tell_levels(struct telling *t, lua_State *L, int number)
{
    static const struct cpprof_vm_peek cut = {.function.name = "[truncated]"};
    struct level levels[2], *level = &levels[0], *below = &levels[1], *spare;
    bool goes_on = true;

    look_at(L, number, level);
    while (goes_on && level->is_there) {
        if (t->n_levels++ == LEVELS_MAX) {
            t->visit(t->ctx, &cut);
            return false;
        }
        look_at(L, ++number, below);
        if (*level->ar.what == 't') /* "tail" of Lua 5.1 */
            goes_on = tell_tail_call(t);
        else
            goes_on = tell(t, L, level, below) &&
                      (!is_tail_called(&level->ar) || tell_tail_call(t));
        spare = level;
        level = below;
        below = spare;
    }
    return goes_on;
}

static void
tell_all(struct telling *t)
{
    struct state *s = t->s;
    lua_State *L = s->at ? s->at : s->running;
    struct resumption *up = s->resumed;
    bool goes_on = true;

    if (s->at && s->after_tail_call)
        goes_on = tell_tail_call(t);
    goes_on = goes_on && tell_levels(t, L, s->at ? s->level : 0);
    if (goes_on && L != s->running)
        goes_on = tell_levels(t, s->running, 0);
    for (; goes_on && up; up = up->up)
        goes_on = tell_levels(t, up->from, 0);
}

void
peek_stack(void *state, cpprof_vm_visit *visit, void *ctx)
{
    struct telling t = {.s = state, .visit = visit, .ctx = ctx};

    if (t.s->at && t.s->is_not_it) {
        t.s->is_not_it = false;
        return;
    }
    if (!t.s->at)
        t.s = state_here(t.s);
    if (!t.s)
        return;
    tell_all(&t);
    if (t.has_unnamed && !t.s->at)
        state_arm(t.s);
}
