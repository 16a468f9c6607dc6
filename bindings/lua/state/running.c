/* SPDX-License-Identifier: MIT */
/*
 * On which native thread a coroutine of Lua 5.4 runs: its innermost protected
 * call is noted in lua_State, as an address on the C stack of that thread.
 *
 * This one word is private to Lua. It is read because the API has no answer,
 * and because the answer keeps the host whole: lua_sethook goes through the
 * calls of a coroutine, and in a thread that does not run it that is a race
 * with the thread that does. Where the word is, is looked for once, in a state
 * of our own in which one word alone can be it (interpreter.c); if there is
 * none, or several, and in 5.1 and LuaJIT, it is not known who runs what.
 */
#include "running.h"

#include <pthread.h>

/* Words of a lua_State that are looked at; it has some 200 bytes. */
#define N_WORDS 25

static uint32_t jump_at; /* in words; 0: not known */

/* Is the address between here and the end of this thread's stack? What glibc
 * knows of a thread stands at the end of its stack, but for the main thread's,
 * above which no other stack is. */
static bool
is_on_this_stack(uintptr_t at)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    uintptr_t self = (uintptr_t)pthread_self();

    return at > here && (self < here || at < self);
}

/* 0: none, or not known. Written by who runs L, maybe another thread now. */
__attribute__((no_sanitize("thread", "address"))) static uintptr_t
jump_of(lua_State *L)
{
    uint32_t at = load_relaxed(&jump_at);

    return at ? load_relaxed((uintptr_t *)L + at) : 0;
}

bool
running_here(lua_State *L)
{
    uintptr_t jump = jump_of(L);

    return !jump || is_on_this_stack(jump);
}

int
running_at_all(lua_State *L)
{
    if (!load_relaxed(&jump_at))
        return -1;
    return jump_of(L) != 0;
}

uintptr_t
running_depth(lua_State *L)
{
    uintptr_t jump = jump_of(L);

    return jump && is_on_this_stack(jump) ? jump : 0;
}

/* The one word that points into the part of the C stack. */
void
running_learn(lua_State *L, const void *high)
{
#if HAVE_LUA54
    uintptr_t low = (uintptr_t)__builtin_frame_address(0);
    const uintptr_t *words = (const uintptr_t *)L;
    uint32_t i, found = 0, n_found = 0;

    for (i = 1; i < N_WORDS; i++) {
        if (words[i] <= low || words[i] >= (uintptr_t)high)
            continue;
        found = i;
        n_found++;
    }
    store_relaxed(&jump_at, n_found == 1 ? found : 0);
#endif
}
