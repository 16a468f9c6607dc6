/* SPDX-License-Identifier: MIT */
/*
 * One of these for each state (lua_newstate) that loaded the module. To the
 * library it is one thread: the coroutines of a state never run at once, and
 * which of them runs is known here, so nothing has to be known of when the
 * garbage collector takes one away.
 *
 * Nothing is installed between samples. A tick comes as a signal to the thread
 * that runs the state; its handler sets a debug hook on the coroutine that
 * runs, which lua_sethook allows in a signal handler, and the hook samples and
 * removes itself. In mode SPAN the hook stays, for calls and returns.
 *
 * A thread that sleeps in a call which a signal would end gets none. So that
 * the end of the sleep is seen, where it is still known who slept, the hook of
 * a tick stays, too, for a while after it has seen a sleep and at the start.
 *
 * The structs are never freed but used again, so that a handler may look at
 * all of them at any time.
 */
#ifndef LUA_STATE_H
#define LUA_STATE_H

#include "compat.h"
#include <cpprof/vm.h>

#include <stdbool.h>
#include <stdint.h>

/* A resume that has not come back, on the C stack of who resumed. */
struct resumption {
    lua_State *from;
    struct resumption *up;
    const struct cpprof_labels *labels; /* of the native thread, then */
};

/* The hook that the program set itself, which ours has replaced. */
struct program_hook {
    lua_State *of; /* the coroutine; NULL: no entry */
    lua_Hook hook; /* NULL: none */
    int mask;
    int count;
};

/* Those that there are, programs.c. Few coroutines have one. */
struct programs {
    struct program_hook *slots; /* NULL: own */
    uint32_t n_slots, n_used;   /* n_used: from the first on; may be free */
    uint32_t is_changing;       /* a handler is to leave it alone */
    uint32_t is_full;
    struct program_hook own[4];
};

/* Known functions, functions.c. */
struct functions {
    struct function **slots;
    uint32_t n_slots; /* a power of two */
    uint32_t n;
    bool is_full; /* forget all before the next walk */
};

enum {
    ARMED_QUIETLY = 1, /* nobody was told: the hook may be there, or not */
    ARMED = 2,         /* a signal is on its way, or the hook is set */
};

/* A tid that no thread has. */
#define TAKEN   (-1) /* of a state that is being made */
#define NOWHERE (-2) /* it is not known which thread runs it */

struct state {
    struct state *next; /* of all; fixed once it is in the list */

    /* Read by handlers and by the ticking thread. */
    int tid;                /* of the native thread that runs it; 0: closed */
    uint32_t is_armed;      /* a sample is due: one of below, or 0 */
    uint32_t has_slept;     /* at a tick since the last sample, lightly */
    uint32_t is_mixed;      /* the next event is a safepoint of mixed stacks */
    uint32_t n_waiting;     /* ticks since a signal that was not taken yet; 0:
                             * none is on its way */
    uint32_t serial;        /* of its life */
    uint64_t rest_until_ns; /* no tick before; CLOCK_MONOTONIC */
    uint64_t slept_cpu_ns;  /* of the ticking thread: cpprof_vm_read_sleep() */
    lua_State *running;     /* coroutine whose hook a tick sets: alive */
    uint32_t n_holders;     /* who look at running: it is not freed meanwhile */
    uint32_t was_elsewhere; /* at a tick another thread than tid ran it */
    uint32_t is_deaf;       /* tid blocks the signal */
    uint32_t span_epoch;    /* the profile whose hook was asked for */
    uint64_t host_ns;       /* no function of it was there; 0: not seen */

    /* Of the native thread that runs it. */
    struct cpprof_vm_thread *thread;
    struct resumption *resumed;
    struct programs programs;
    struct functions functions;
    lua_State *main;              /* one coroutine as long as it is there */
    const void *registry;         /* tells it from all other states */
    uint64_t mixed_rest_until_ns; /* as rest_until_ns, for mixed stacks */
    uint64_t looked;  /* at the clock in mode SPAN, by the counter; 0: never */
    uint32_t stays;   /* events until the hook of a tick goes */
    uint64_t left_ns; /* the hook has seen it leave; CLOCK_MONOTONIC */
    bool is_left;     /* the host is at work, not a function of the state */
    bool uses_labels;
    const struct cpprof_labels *own_labels; /* of the coroutine that runs */

    /* What the next walk begins with. */
    lua_State *at;
    int level;
    bool after_tail_call;  /* of a function that has left its frame */
    bool is_not_it;        /* the stacks that wait for it are another's */
    struct state *waiting; /* with stacks of this one; NULL: none */
};

/* ---------------------------------------------------- state.c ------------ */

extern struct cpprof_vm *lua_vm;

/* Make the calling state known; raises errors. Idempotent. NULL: it is being
 * closed. */
struct state *
state_open(lua_State *L);

/* The state that L belongs to, or NULL. No error, no allocation. */
struct state *
state_of(lua_State *L);

/* The calling native thread. Safety: AS. */
int
own_thread(void);

/* The list of all, closed ones too. */
struct state *
states_first(void);

/* Its running coroutine, which is there until it is let go; NULL: it is closed,
 * and not held. Safety: MT, AS. */
lua_State *
state_hold(struct state *s);
void
state_let_go(struct state *s);

/* The calling thread runs it, and was not known to. Safety: AS. */
void
state_move_here(struct state *s);

/* ---------------------------------------------------- ticks.c ------------ */

/* Once in a process. */
void
tick_begin(void);

/* Does the calling thread block the signal? */
bool
tick_is_blocked(void);

/* cpprof_vm_ops.interrupt */
void
tick_interrupt(void *state);

/* What the calling thread runs, if it is thought to run s: a host may call
 * several states, one of them from another's function, too. NULL: none. Safety:
 * AS. */
struct state *
state_here(struct state *s);

/* It is here: come to a safepoint at the next event, also when no profile of
 * scripts runs. False: that was dear a moment ago, and is not done. Safety:
 * AS. */
bool
state_arm(struct state *s);

/* -------------------------------------------------- programs.c ----------- */

/* Of L, while ours is there; hook NULL: it has none. Safety: AS, in handlers
 * that interrupted the thread of s; so have all of these. */
struct program_hook
program_of(const struct state *s, lua_State *L);
/* False: there is no room now, or L is being changed. */
bool
program_put(struct state *s, const struct program_hook *program);
/* L has its own hook again. */
void
program_remove(struct state *s, lua_State *L);
/* More room, if that was wanted. Not AS. */
void
programs_grow(struct state *s);
void
programs_clear(struct programs *programs);

/* ---------------------------------------------------- hooks.c ------------ */

/* Set the hook that the running profile needs, keeping the program's own.
 * May be called in a signal handler of the thread that runs L. */
void
hook_for_tick(struct state *s, lua_State *L);
void
hook_for_spans(struct state *s, lua_State *L);
/* The same in mode SPAN, and the next instruction is an event. */
void
hook_for_instruction(struct state *s, lua_State *L);

/* L is about to run: with the hook that the profile and s have now. */
void
hook_for_switch(struct state *s, lua_State *L);
/* In mode TICK or CPU: see the end of sleeps from here on. */
void
hook_for_sleeps(struct state *s);
/* Is it there? */
bool
hook_is_for_spans(lua_State *L);
/* Put the program's own in its place, and put it there again. */
void
hook_remove(struct state *s, lua_State *L);
void
hook_again(struct state *s, lua_State *L);
/* co was made by L: it has the program's hook of L, not ours. */
void
hook_for_new(struct state *s, lua_State *L, lua_State *co);

/* -------------------------------------------------- debugging.c ---------- */

/* debug.sethook and debug.gethook that are about the program's hook. */
void
debugging_open(lua_State *L);

/* ----------------------------------------------------- walk.c ------------ */

size_t
walk_stack(void *state, struct cpprof_vm_frame *frames, size_t max);

/* Have the functions on the stack remembered, with their names. */
void
walk_names(struct state *s);

/* ----------------------------------------------------- peek.c ------------ */

void
peek_stack(void *state, cpprof_vm_visit *visit, void *ctx);

/* -------------------------------------------------- running.c ----------- */

/* False: another native thread runs L. True: this one, or it is not known.
 * Safety: AS; so have all but the last. */
bool
running_here(lua_State *L);
/* Is it in a protected call, of any thread? 1 or 0; -1: not known. */
int
running_at_all(lua_State *L);
/* Where on this thread's stack the innermost protected call of L is; 0: there
 * is none, or it is not known. Less is deeper. */
uintptr_t
running_depth(lua_State *L);
/* Find out how all this can be known, by L, of which one protected call was
 * made, between here and high on the C stack. */
void
running_learn(lua_State *L, const void *high);

/* ------------------------------------------------- run_loop.c ------------ */

/* Once in a process; false: stacks stay native. */
bool
run_loop_learn(void);

/* ------------------------------------------------ functions.c ------------ */

#define FUNCTION_NAME_MAX 160

/* Of a level of C; pushes and pops a value. */
lua_CFunction
c_function_at(lua_State *L, lua_Debug *ar);
/* As function_of(), but only of what is remembered, and nothing is changed or
 * pushed. NULL: it is not. hash: the same for the same function, not 0. */
const struct function *
function_known(const struct state *s, lua_State *L, lua_Debug *ar,
               lua_CFunction c_function, uint64_t *hash);
/* What the caller calls it; allocates nothing. */
bool
name_by_call(lua_State *L, lua_Debug *ar, char *name);
const char *
file_of(const lua_Debug *ar);

/* Of a level that lua_getinfo has answered "Slu" for. Never NULL. */
const struct function *
function_of(struct state *s, lua_State *L, lua_Debug *ar);
/* The frame that a tail call has replaced. */
extern const struct function tail_called;
/* Before a walk: there is a bound to what is remembered. */
void
functions_begin(struct functions *known);
void
functions_free(struct functions *known);
bool
describe_function(void *state, const void *function,
                  struct cpprof_vm_function *what);

/* ---------------------------------------------- source_name.c ------------ */

enum source_name { SOURCE_UNKNOWN, SOURCE_ANONYMOUS, SOURCE_NAMED };

/* Of a level that lua_getinfo has answered "S" for. called: what its caller
 * calls it, which decides where the line defines several, or "". */
enum source_name
name_by_source(const lua_Debug *ar, const char *called, char *name, size_t n);
/* Does the line define several functions, or is it not to be had? */
bool
source_is_crowded(const lua_Debug *ar);

/* ----------------------------------------------- coroutines.c ------------ */

/* Put coroutine.resume and coroutine.wrap in the place of Lua's own: the same,
 * and known is which coroutine runs. */
void
coroutines_open(lua_State *L);
int
coroutine_wrapped(lua_State *L);

/* --------------------------------------------------- labels.c ------------ */

/* labels({k = v}, fn, ...) */
int
labels_call(lua_State *L);
/* Before a resume, when there are labels: those that the coroutine on top of L
 * had when it yielded. Takes it off. */
void
labels_enter(lua_State *L, struct state *s);

/* ----------------------------------------------------- init.c ------------ */

/* LUA_INIT as it was before libcpprof.so changed it. */
void
init_give_back(void);

/* --------------------------------------------------- module.c ------------ */

CPPROF_API int
luaopen_cpprof(lua_State *L);

/* --------------------------------------------------- fields.c ------------ */
/* Of the table at index, if it is one; an absent field is otherwise. */

struct whole {
    int64_t least, most; /* up to 2^53 */
};

/* Has it these fields only? names: up to NULL. */
void
fields_check(lua_State *L, int index, const char *const *names);
int64_t
field_whole(lua_State *L, int index, const char *name, int64_t otherwise,
            const struct whole *bounds);
bool
field_flag(lua_State *L, int index, const char *name, bool otherwise);
/* Which of three words; the first, if it is absent. */
int
field_word(lua_State *L, int index, const char *name, const char *const *words);
/* Leaves the value on the stack, which holds it. */
const char *
field_text(lua_State *L, int index, const char *name, const char *otherwise);

/* ------------------------------------------------- profiles.c ------------ */

/* profile.new, profile.lookup and the heap's, into the table on top. */
void
profiles_open(lua_State *L);
/* nil, and the text. */
int
push_failure(lua_State *L, const struct cpprof_error *error);
/* A writer for field "out" of the table at index; false: error is filled. */
bool
writer_of(lua_State *L, int index, const char *otherwise,
          struct cpprof_writer *writer, struct cpprof_error *error);

#endif
