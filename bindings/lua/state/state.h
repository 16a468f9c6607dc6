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

#include "../compat.h"
#include "../names/functions.h"
#include "programs.h"
#include <cpprof/vm.h>

#include <stdbool.h>
#include <stdint.h>

/* A resume that has not come back, on the C stack of who resumed. */
struct resumption {
    lua_State *from;
    struct resumption *up;
    const struct cpprof_labels *labels; /* of the native thread, then */
};

enum {
    ARMED_QUIETLY = 1, /* nobody was told: the hook may be there, or not */
    ARMED = 2,         /* a signal is on its way, or the hook is set */
};

/* A tid that no thread has. */
#define TAKEN   (-1) /* of a state that is being made */
#define NOWHERE (-2) /* it is not known which thread runs it */

struct state {
    struct state *next;   /* of all; fixed once it is in the list */
    uint32_t serial;      /* of its life */
    int tid;              /* of the native thread that runs it; 0: closed */
    lua_State *running;   /* coroutine whose hook a tick sets: alive */
    uint32_t n_holders;   /* who look at running: it is not freed meanwhile */
    const void *registry; /* tells it from all other states */
    struct programs programs;

    /* From here on all is 0 at the beginning of a life.
     *
     * Read by handlers and by the ticking thread. */
    uint32_t is_armed;      /* a sample is due: one of below, or 0 */
    uint32_t has_slept;     /* at a tick since the last sample, lightly */
    uint32_t is_mixed;      /* the next event is a safepoint of mixed stacks */
    uint32_t n_waiting;     /* ticks since a signal that was not taken yet; 0:
                             * none is on its way */
    uint64_t rest_until_ns; /* no tick before; CLOCK_MONOTONIC */
    uint64_t slept_cpu_ns;  /* of the ticking thread: cpprof_vm_read_sleep() */
    uint32_t was_elsewhere; /* at a tick another thread than tid ran it */
    uint32_t is_deaf;       /* tid blocks the signal */
    uint32_t span_epoch;    /* the profile whose hook was asked for */
    uint64_t host_ns;       /* no function of it was there; 0: not seen */

    /* Used by the native thread that runs it. */
    struct cpprof_vm_thread *thread;
    struct resumption *resumed;
    struct functions functions;
    lua_State *main;              /* one coroutine as long as it is there */
    uint64_t mixed_rest_until_ns; /* as rest_until_ns, for mixed stacks */
    bool is_mixed_dear;           /* the last hook of one took long */
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

/* Make the calling state known; raises errors. Idempotent. NULL: it is being
 * closed. lua_vm has been made. */
struct state *
state_open(lua_State *L);
/* In a forked child, whose one thread runs the states that it ran before. */
void
states_forked(void);

/* The state that L belongs to, or NULL. No error, no allocation. */
struct state *
state_of(lua_State *L);

/* The calling native thread. Safety: AS. */
int
own_thread(void);

/* The list of all, closed ones too. */
struct state *
states_first(void);

/* Its running coroutine, which is there until the state is dropped; NULL: it is
 * closed, and not held. Safety: MT, AS. */
lua_State *
state_hold(struct state *s);
void
state_drop(struct state *s);

/* The calling thread runs it, and was not known to. Safety: AS. */
void
state_move_here(struct state *s);

/* The signal of ticks; 0: none. */
extern int tick_signal;

/* Does the calling thread block it? */
bool
tick_is_blocked(void);

#endif
