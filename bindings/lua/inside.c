/* SPDX-License-Identifier: MIT */
/*
 * What the C API tells of a call only by pushing a value, or not at all, read
 * where Lua 5.4 has it: which C function runs, whether the interpreter was
 * entered for a Lua function, on which C stack a coroutine runs, whether the
 * stack of Lua is being moved.
 *
 * None of this is promised to stay. So it is looked at once, in a state where
 * all the answers are known (run_loop.c); if one is another, nothing is read
 * here ever after, and who asks has to do with what the API tells.
 *
 * Source: lstate.h, lobject.h of Lua 5.4.0 to 5.4.7.
 */
#include "state.h"

#include <pthread.h>

#if HAVE_LUA54
/* TValue. */
struct value {
    union {
        lua_CFunction light;
        const struct c_closure *closure;
    } of;
    unsigned char tag;
};

#define TAG_MASK      0x3f
#define TAG_LIGHT     (LUA_TFUNCTION | 1 << 4)
#define TAG_C_CLOSURE (LUA_TFUNCTION | 2 << 4)

/* CClosure. */
struct c_closure {
    void *next;
    unsigned char tt, marked, n_upvalues;
    void *gray;
    lua_CFunction function;
};

/* CallInfo: what lua_Debug.i_ci points to. */
struct CallInfo {
    const struct value *function; /* 5.4.6, while it moves: an offset */
    const struct value *top;
    struct CallInfo *previous, *next;
    intptr_t of_kind[3];
    int other;
    short n_results;
    unsigned short status;
};

#define STATUS_FRESH (1 << 2)

/* An offset into a stack is less than this, an address is not. */
#define OFFSET_MAX ((uintptr_t)1 << 31)

static uint32_t is_known;
static uint32_t jump_at; /* lua_State.errorJmp, in words; 0: not known */

/* Words of a lua_State, which is some 200 bytes, that are looked through. */
#define N_WORDS 25

static const struct CallInfo *
call_of(const lua_Debug *ar)
{
    return ar->i_ci;
}

static bool
is_moving(const struct CallInfo *call)
{
    return (uintptr_t)call->function < OFFSET_MAX;
}

static bool
can_read(void)
{
    return __atomic_load_n(&is_known, __ATOMIC_ACQUIRE);
}

bool
inside_is_moving(const lua_Debug *ar)
{
    return can_read() && is_moving(call_of(ar));
}

static lua_CFunction
function_of_call(const struct CallInfo *call)
{
    const struct value *value = call->function;

    switch (value->tag & TAG_MASK) {
    case TAG_LIGHT:
        return value->of.light;
    case TAG_C_CLOSURE:
        return value->of.closure->function;
    default:
        return NULL;
    }
}

lua_CFunction
inside_c_function(const lua_Debug *ar)
{
    return can_read() ? function_of_call(call_of(ar)) : NULL;
}

int
inside_is_entry(const lua_Debug *ar)
{
    return can_read() ? (call_of(ar)->status & STATUS_FRESH) != 0 : -1;
}

/* Between here and where the stack of this thread ends. What glibc knows of a
 * thread stands at the end of its stack, but for the main thread's, above
 * which no other stack is. */
static bool
is_on_this_stack(uintptr_t at)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    uintptr_t self = (uintptr_t)pthread_self();

    return at > here && (self < here || at < self);
}

/* Written by who runs L, which may be another thread now. */
__attribute__((no_sanitize("thread", "address"))) static uintptr_t
jump_of(lua_State *L)
{
    return __atomic_load_n((uintptr_t *)L +
                               __atomic_load_n(&jump_at, __ATOMIC_RELAXED),
                           __ATOMIC_RELAXED);
}

bool
inside_runs_here(lua_State *L)
{
    uintptr_t jump =
        __atomic_load_n(&jump_at, __ATOMIC_RELAXED) ? jump_of(L) : 0;

    return !jump || is_on_this_stack(jump);
}

/* ---- the look ---------------------------------------------------------- */

/* The one word of L that points into the part of the C stack. */
static uint32_t
find_jump(lua_State *L, uintptr_t low, uintptr_t high)
{
    const uintptr_t *words = (const uintptr_t *)L;
    uint32_t i, found = 0;

    for (i = 1; i < N_WORDS; i++) {
        if (words[i] <= low || words[i] >= high)
            continue;
        if (found)
            return 0;
        found = i;
    }
    return found;
}

static bool
is_c_function(lua_State *L, int level, lua_CFunction function)
{
    lua_Debug ar;

    return lua_getstack(L, level, &ar) && !is_moving(call_of(&ar)) &&
           function_of_call(call_of(&ar)) == function;
}

static bool
is_fresh(lua_State *L, int level, bool wanted)
{
    lua_Debug ar;

    return lua_getstack(L, level, &ar) && !is_moving(call_of(&ar)) &&
           ((call_of(&ar)->status & STATUS_FRESH) != 0) == wanted;
}

/* Levels, from the leaf: light; a Lua function; who called that in Lua, and was
 * called by C; closure, with an upvalue. All of it between here and high on
 * the C stack, where one protected call was made, of L. */
void
inside_look(lua_State *L, lua_CFunction light, lua_CFunction closure,
            const void *high)
{
    uintptr_t low = (uintptr_t)__builtin_frame_address(0);

    __atomic_store_n(&jump_at, find_jump(L, low, (uintptr_t)high),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&is_known,
                     is_c_function(L, 0, light) && is_fresh(L, 1, false) &&
                         is_fresh(L, 2, true) && is_c_function(L, 3, closure),
                     __ATOMIC_RELEASE);
}

#else
bool
inside_is_moving(const lua_Debug *ar)
{
    return false;
}

lua_CFunction
inside_c_function(const lua_Debug *ar)
{
    return NULL;
}

int
inside_is_entry(const lua_Debug *ar)
{
    return -1;
}

bool
inside_runs_here(lua_State *L)
{
    return true;
}

void
inside_look(lua_State *L, lua_CFunction light, lua_CFunction closure,
            const void *high)
{
}
#endif
