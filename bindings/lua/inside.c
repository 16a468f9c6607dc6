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
        const struct lua_closure *lua;
    } of;
    unsigned char tag;
};

#define TAG_MASK      0x3f
#define TAG_LUA       LUA_TFUNCTION
#define TAG_LIGHT     (LUA_TFUNCTION | 1 << 4)
#define TAG_C_CLOSURE (LUA_TFUNCTION | 2 << 4)

/* CClosure. */
struct c_closure {
    void *next;
    unsigned char tt, marked, n_upvalues;
    void *gray;
    lua_CFunction function;
};

/* LClosure, Proto. */
struct lua_closure {
    void *next;
    unsigned char tt, marked, n_upvalues;
    void *gray;
    const struct prototype *prototype;
};
struct prototype {
    void *next;
    unsigned char tt, marked, n_parameters, is_vararg, max_stack;
    int n_upvalues, n_constants, n_code, n_line_info, n_prototypes, n_locals,
        n_lines, first_line, last_line;
    const void *constants;
    const uint32_t *code;
};

/* CallInfo: what lua_Debug.i_ci points to. */
struct CallInfo {
    const struct value *function; /* 5.4.6, while it moves: an offset */
    const struct value *top;
    struct CallInfo *previous, *next;
    const uint32_t *saved_pc; /* of a Lua function: after what it does */
    intptr_t of_kind[2];
    int other;
    short n_results;
    unsigned short status;
};

#define STATUS_FRESH (1 << 2)

/* An offset into a stack is less than this, an address is not. */
#define OFFSET_MAX ((uintptr_t)1 << 31)

static uint32_t is_known;
static uint32_t jump_at;   /* lua_State.errorJmp, in words; 0: not known */
static uint32_t global_at; /* ... .l_G; 0: not known */

/* Instructions that allocate and have not noted their place: table
 * constructors. */
#define OPCODE_MASK     0x7f
#define OPCODE_NEWTABLE 19
#define OPCODE_SETLIST  78
#define OPCODE_EXTRA    82 /* follows them, at times */

/* Of the run loop's frame; it has some 20 words. */
#define FRAME_WORDS 64

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

/* The last one is no call but what all began with. */
int
inside_caller(const lua_Debug *ar, lua_Debug *caller)
{
    struct CallInfo *call;

    if (!can_read())
        return -1;
    call = call_of(ar)->previous;
    if (!call || !call->previous)
        return 0;
    caller->i_ci = call;
    return 1;
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

int
inside_is_run(lua_State *L)
{
    if (!__atomic_load_n(&jump_at, __ATOMIC_RELAXED))
        return -1;
    return jump_of(L) != 0;
}

uintptr_t
inside_global(lua_State *L)
{
    uint32_t at = __atomic_load_n(&global_at, __ATOMIC_RELAXED);

    return at ? ((const uintptr_t *)L)[at] : 0;
}

bool
inside_words(uint32_t *jump, uint32_t *global)
{
    *jump = __atomic_load_n(&jump_at, __ATOMIC_RELAXED);
    *global = __atomic_load_n(&global_at, __ATOMIC_RELAXED);
    return *jump && *global;
}

uintptr_t
inside_depth(lua_State *L)
{
    uintptr_t jump =
        __atomic_load_n(&jump_at, __ATOMIC_RELAXED) ? jump_of(L) : 0;

    return jump && is_on_this_stack(jump) ? jump : 0;
}

/* ---- code -------------------------------------------------------------- */

static const struct prototype *
prototype_of(const struct CallInfo *call, const lua_Debug *ar)
{
    const struct value *value = call->function;
    const struct prototype *p;

    if ((value->tag & TAG_MASK) != TAG_LUA)
        return NULL;
    p = value->of.lua->prototype;
    return p->first_line == ar->linedefined &&
                   p->last_line == ar->lastlinedefined && p->n_code > 0 &&
                   (uintptr_t)call->saved_pc - (uintptr_t)p->code <=
                       sizeof *p->code * (unsigned)p->n_code
               ? p
               : NULL;
}

/* Memory comes again, but not often for code of the same size. */
uint64_t
inside_code(const lua_Debug *ar)
{
    const struct prototype *p = can_read() && !is_moving(call_of(ar))
                                    ? prototype_of(call_of(ar), ar)
                                    : NULL;

    if (!p)
        return 0;
    return (uint64_t)(uintptr_t)p ^ (uint64_t)(unsigned)p->n_code << 48 ^
           (uint64_t)(unsigned)p->n_constants << 56;
}

/* ---- table constructors ------------------------------------------------ */

static bool
has_opcode(const struct prototype *p, size_t at, uint32_t opcode)
{
    return at < (size_t)p->n_code && (p->code[at] & OPCODE_MASK) == opcode;
}

static bool
is_constructor(const struct prototype *p, size_t at)
{
    return has_opcode(p, at, OPCODE_NEWTABLE) ||
           has_opcode(p, at, OPCODE_SETLIST);
}

/* Does word point behind an instruction that constructs a table, or behind what
 * that has as an extra? Where it is; NULL: no. */
static const uint32_t *
constructor_before(const struct prototype *p, uintptr_t word)
{
    uintptr_t from_code = word - (uintptr_t)p->code;
    size_t at = from_code / sizeof *p->code;

    if (from_code % sizeof *p->code || at > (size_t)p->n_code)
        return NULL;
    if (is_constructor(p, at - 1))
        return &p->code[at - 1];
    if (has_opcode(p, at - 1, OPCODE_EXTRA) && is_constructor(p, at - 2))
        return &p->code[at - 2];
    return NULL;
}

static const uint32_t *
find_constructor(lua_State *L, const struct prototype *p)
{
    const void *high = (const void *)jump_of(L);
    const uint32_t *found = NULL;
    uintptr_t words[FRAME_WORDS];
    size_t i, n;

    n = is_on_this_stack((uintptr_t)high)
            ? cpprof_vm_run_loop_words(lua_vm, high, words, FRAME_WORDS)
            : 0;
    for (i = 0; i < n && !found; i++)
        found = constructor_before(p, words[i]);
    return found;
}

/* Lua has the place that a call or the like has noted; for lua_getinfo it is,
 * meanwhile, where a constructor would note it. */
void
inside_find_line(lua_State *L, lua_Debug *ar)
{
    struct CallInfo *call = ar->i_ci;
    const struct prototype *p;
    const uint32_t *noted, *found;

    if (!can_read() || !__atomic_load_n(&jump_at, __ATOMIC_RELAXED))
        return;
    p = prototype_of(call, ar);
    found = p ? find_constructor(L, p) : NULL;
    if (!found)
        return;
    noted = call->saved_pc;
    call->saved_pc = found + 1;
    lua_getinfo(L, "l", ar);
    call->saved_pc = noted;
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

/* The first word, after those that tell what it is, that two coroutines have in
 * common: before it is only the top of the stack. */
static uint32_t
find_global(lua_State *L)
{
    const uintptr_t *words = (const uintptr_t *)L;
    const uintptr_t *others = (const uintptr_t *)lua_newthread(L);
    uint32_t i;

    for (i = 2; i < 10; i++)
        if (words[i] && words[i] == others[i])
            return i;
    return 0;
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
    uint32_t global = find_global(L);

    lua_pop(L, 1);
    __atomic_store_n(&global_at, global, __ATOMIC_RELAXED);
    __atomic_store_n(&jump_at, find_jump(L, low, (uintptr_t)high),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&is_known,
                     lua_version(L) == LUA_VERSION_NUM &&
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

int
inside_caller(const lua_Debug *ar, lua_Debug *caller)
{
    return -1;
}

lua_CFunction
inside_c_function(const lua_Debug *ar)
{
    return NULL;
}

uint64_t
inside_code(const lua_Debug *ar)
{
    return 0;
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

int
inside_is_run(lua_State *L)
{
    return -1;
}

uintptr_t
inside_global(lua_State *L)
{
    return 0;
}

bool
inside_words(uint32_t *jump, uint32_t *global)
{
    return false;
}

uintptr_t
inside_depth(lua_State *L)
{
    return 0;
}

void
inside_find_line(lua_State *L, lua_Debug *ar)
{
}

void
inside_look(lua_State *L, lua_CFunction light, lua_CFunction closure,
            const void *high)
{
}
#endif
