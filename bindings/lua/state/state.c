/* SPDX-License-Identifier: MIT */
/*
 * The Lua states that the module was loaded into. The list only grows at the
 * front, so it is read without a lock; the struct of a closed state is used for
 * the next one, under a new serial number. Protocol of holding a state from
 * another thread or a handler: count yourself in n_holders, then read
 * `running`; NULL means that it is being closed. Closing clears `running` first
 * and then waits until n_holders is 0.
 */
#include "state.h"

#include "../names/functions.h"
#include "programs.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int tick_signal;

static struct state *states; /* only ever grows at the front */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char state_key; /* of the registry: the state's struct, or */
static char is_closing;      /* ... this */
static const char guard_key; /* ... what closes it */

/* The last answer of state_of(). */
static __thread lua_State *last_L;
static __thread struct state *last;
static __thread uint32_t last_serial;

static __thread int own_tid;

int
own_thread(void)
{
    if (!own_tid)
        own_tid = (int)syscall(SYS_gettid);
    return own_tid;
}

bool
tick_is_blocked(void)
{
    sigset_t mask;

    return tick_signal && !pthread_sigmask(SIG_BLOCK, NULL, &mask) &&
           sigismember(&mask, tick_signal) > 0;
}

struct state *
states_first(void)
{
    return load_acquire(&states);
}

lua_State *
state_hold(struct state *s)
{
    lua_State *L;

    __atomic_add_fetch(&s->n_holders, 1, __ATOMIC_SEQ_CST);
    L = __atomic_load_n(&s->running, __ATOMIC_SEQ_CST);
    if (!L)
        state_drop(s);
    return L;
}

void
state_drop(struct state *s)
{
    __atomic_sub_fetch(&s->n_holders, 1, __ATOMIC_SEQ_CST);
}

/* The child has no other threads, but this one may run their states. */
void
states_forked(void)
{
    int parents = own_tid;
    struct state *s;

    own_tid = 0;
    for (s = states; s; s = s->next) {
        if (s->tid > 0)
            s->tid = s->tid == parents ? own_thread() : NOWHERE;
        s->is_armed = 0;
        s->n_waiting = 0;
        s->n_holders = 0;
    }
    pthread_mutex_init(&lock, NULL);
}

/* ---- states ------------------------------------------------------------ */

static struct state *
take_state(void)
{
    struct state *s;

    pthread_mutex_lock(&lock);
    for (s = states; s && load_acquire(&s->tid); s = s->next) {
    }
    if (!s && (s = calloc(1, sizeof *s))) {
        s->next = states;
        store_release(&states, s);
    }
    if (s) {
        store_relaxed(&s->tid, TAKEN);
        s->serial++;
        store_release(&s->running, NULL);
        memset(&s->is_armed, 0, sizeof *s - offsetof(struct state, is_armed));
        programs_clear(&s->programs);
    }
    pthread_mutex_unlock(&lock);
    return s;
}

/* The handler must not find the state any more when the thread is freed. */
static void
close_state(struct state *s)
{
    struct cpprof_vm_thread *was = cpprof_vm_thread_enter(NULL);

    if (was != s->thread)
        cpprof_vm_thread_enter(was);
    store_release(&s->is_armed, 0);
    __atomic_store_n(&s->running, NULL, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&s->n_holders, __ATOMIC_SEQ_CST))
        sched_yield();
    cpprof_vm_thread_free(s->thread);
    s->thread = NULL;
    functions_free(&s->functions);
    if (last == s)
        last_L = NULL;
    store_release(&s->serial, s->serial + 1);
    store_release(&s->tid, 0);
}

static int
close_guard(lua_State *L)
{
    struct state **guard = lua_touserdata(L, 1);

    if (*guard) {
        lua_pushlightuserdata(L, &is_closing);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &state_key);
        close_state(*guard);
        *guard = NULL;
    }
    return 0;
}

/* Push what closes it when Lua closes the state. Finalizers that run after that
 * find none, and make none: nobody would close it again. */
static struct state **
push_guard(lua_State *L)
{
    struct state **guard = lua_newuserdata(L, sizeof *guard);

    *guard = NULL;
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, close_guard);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    return guard;
}

/* The main coroutine, which lives as long as the state; where it is not to be
 * had, the one that loads the module, kept alive. */
static lua_State *
main_of(lua_State *L)
{
    static const char kept_key;
    lua_State *kept;

#if LUA_VERSION_NUM >= 502
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
#else
    lua_pushthread(L);
#endif
    kept = lua_tothread(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kept_key);
    return kept ? kept : L;
}

/* The struct that the registry has; NULL: none. */
static struct state *
find(lua_State *L, bool *closes)
{
    void *found;

    lua_rawgetp(L, LUA_REGISTRYINDEX, &state_key);
    found = lua_touserdata(L, -1);
    lua_pop(L, 1);
    *closes = found == &is_closing;
    return *closes ? NULL : found;
}

static struct state *
make(lua_State *L)
{
    struct state *s = lua_vm ? take_state() : NULL;

    if (s && cpprof_vm_thread_new(lua_vm, s, &s->thread, NULL) == CPPROF_OK)
        return s;
    if (s)
        store_release(&s->tid, 0);
    luaL_error(L, "cpprof: out of memory");
    return NULL;
}

struct state *
state_open(lua_State *L)
{
    struct state **guard, *s = state_of(L);
    lua_State *main_L;
    bool closes;

    if (s || (!find(L, &closes) && closes))
        return s;
    guard = push_guard(L);
    main_L = main_of(L);
    s = make(L);
    s->main = main_L;
    s->registry = lua_topointer(L, LUA_REGISTRYINDEX);
    store_release(&s->running, main_L);
    store_relaxed(&s->is_deaf, tick_is_blocked());
    store_release(&s->tid, own_thread());
    *guard = s;
    lua_rawsetp(L, LUA_REGISTRYINDEX, &guard_key);
    lua_pushlightuserdata(L, s);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &state_key);
    cpprof_vm_thread_enter(s->thread);
    return s;
}

/* The calling thread runs s now: drop what ticks asked of another thread in
 * vain. */
void
state_move_here(struct state *s)
{
    cpprof_vm_thread_no_answer(s->thread);
    store_release(&s->tid, own_thread());
    store_release(&s->n_waiting, 0);
    store_relaxed(&s->is_deaf, 0);
    store_relaxed(&s->was_elsewhere, 0);
}

static struct state *
look_up(lua_State *L)
{
    bool closes;
    struct state *s = find(L, &closes);

    if (!s)
        return NULL;
    if (s->tid != own_thread()) {
        state_move_here(s);
        store_relaxed(&s->is_deaf, tick_is_blocked());
    }
    last_L = L;
    last = s;
    last_serial = s->serial;
    cpprof_vm_thread_enter(s->thread);
    return s;
}

/* By now a coroutine of another state may have this address; each state has its
 * own registry. */
static bool
is_last(lua_State *L)
{
    return last_L == L &&
           lua_topointer(L, LUA_REGISTRYINDEX) == last->registry &&
           last_serial == load_relaxed(&last->serial) &&
           load_relaxed(&last->tid) == own_thread();
}

struct state *
state_of(lua_State *L)
{
    return is_last(L) ? last : look_up(L);
}
