/* SPDX-License-Identifier: MIT */
/* The stack at a hook: of the coroutine that runs, then of the one that resumed
 * it, and so on. */
#include "stacks.h"

#include "../names/functions.h"
#include "../state/state.h"

static size_t
put(struct cpprof_vm_frame *frame, const struct function *function, int line)
{
    frame->function = function;
    frame->line = line > 0 ? line : 0;
    frame->pc = (uint32_t)frame->line;
    frame->flags = 0;
    return 1;
}

/* The levels of one coroutine. Below a function that was tail called, one is
 * missing. */
static size_t
walk_levels(struct state *s, lua_State *L, int level,
            struct cpprof_vm_frame *frames, size_t max)
{
    lua_Debug ar;
    size_t n = 0;

    if (!lua_checkstack(L, LUA_MINSTACK))
        return 0;
    for (; n < max && lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, LUA_VERSION_NUM >= 502 ? "Slut" : "Slu", &ar);
        if (*ar.what == 't') /* "tail" of Lua 5.1 */
            n += put(&frames[n], &tail_called, 0);
        else
            n += put(&frames[n], function_of(&s->functions, L, &ar),
                     ar.currentline);
        if (is_tail_called(&ar) && n < max)
            n += put(&frames[n], &tail_called, 0);
    }
    return n;
}

size_t
walk_stack(void *state, struct cpprof_vm_frame *frames, size_t max)
{
    struct state *s = state;
    lua_State *L = s->at ? s->at : s->running;
    struct resumption *up = s->resumed;
    size_t n = 0;

    functions_begin(&s->functions);
    if (s->after_tail_call && s->at && max)
        n += put(frames, &tail_called, 0);
    n += walk_levels(s, L, s->at ? s->level : 0, frames + n, max - n);
    /* Resumed by code that has kept the original coroutine.resume. */
    if (L != s->running)
        n += walk_levels(s, s->running, 0, frames + n, max - n);
    for (; up; up = up->up)
        n += walk_levels(s, up->from, 0, frames + n, max - n);
    return n;
}

#define NAMES_MAX 64 /* how many functions at the leaf are compared */

void
walk_names(struct state *s)
{
    struct cpprof_vm_frame frames[NAMES_MAX];

    walk_stack(s, frames, NAMES_MAX);
}
