/* SPDX-License-Identifier: MIT */
/* The states that are there, and the signal that ticks come as. */
#include "state.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Signals that are tried, from the last real-time one down: who takes any
 * begins at the other end. */
#define SIGNALS_TRIED 8

/* A tid that no thread has: of a state that is being made. */
#define TAKEN (-1)

struct cpprof_vm *lua_vm;

static struct state *states; /* only ever grows at the front */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int tick_signal; /* 0: none is free */

static const char state_key; /* of the registry: the state's struct */
static const char guard_key; /* ... what closes it */

/* The last answer of state_of(). */
static __thread lua_State *last_L;
static __thread struct state *last;
static __thread uint32_t last_serial;

static __thread int own_tid;

static int
tid(void)
{
    if (!own_tid)
        own_tid = (int)syscall(SYS_gettid);
    return own_tid;
}

static void
forget_tid(void)
{
    own_tid = 0;
}

/* ---- ticks ------------------------------------------------------------- */

/* No function of it is there: the host does something else. */
static bool
is_idle(struct state *s)
{
    lua_Debug ar;

    return !s->resumed && !lua_getstack(s->running, 0, &ar);
}

/* Its time does not count until the next call comes by the hook. */
void
state_leave(struct state *s)
{
    struct cpprof_vm_thread *was = cpprof_vm_enter(NULL);

    if (was == s->thread)
        s->is_left = true;
    else
        cpprof_vm_enter(was);
}

/* lua_sethook looks at every frame there is, twice for a sample. Where they are
 * a hundred thousand, ticks come as much less often as keeps that at a percent
 * or two of the time. */
#define REST 100

/* Tunable: ticks after which a signal that did not come is taken for lost, as
 * when the state went on in another thread. */
#define LOST 100

static uint64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void
arm_own_states(int self)
{
    struct state *s;

    for (s = __atomic_load_n(&states, __ATOMIC_ACQUIRE); s; s = s->next) {
        if (__atomic_load_n(&s->tid, __ATOMIC_ACQUIRE) != self ||
            !__atomic_load_n(&s->is_armed, __ATOMIC_ACQUIRE))
            continue;
        if (__atomic_load_n(&cpprof_vm_spans, __ATOMIC_RELAXED)) {
            __atomic_store_n(&s->is_armed, 0, __ATOMIC_RELAXED);
            hook_for_spans(s, s->running);
            continue;
        }
        hook_for_tick(s, s->running);
        if (is_idle(s))
            state_leave(s);
    }
}

/* In the thread that runs the states which it arms. */
static void
on_tick(int number)
{
    int saved = errno, self = tid();
    uint64_t begin = now_ns(), end;
    struct state *s;

    arm_own_states(self);
    end = now_ns();
    for (s = __atomic_load_n(&states, __ATOMIC_ACQUIRE); s; s = s->next) {
        if (__atomic_load_n(&s->tid, __ATOMIC_ACQUIRE) != self)
            continue;
        __atomic_store_n(&s->rest_until_ns, end + REST * (end - begin),
                         __ATOMIC_RELAXED);
        __atomic_store_n(&s->n_waiting, 0, __ATOMIC_RELEASE);
    }
    errno = saved;
}

/* Is the last signal on its way, so that another would only queue up behind it,
 * or would one more keep the thread from its work? */
static bool
has_enough(struct state *s)
{
    uint32_t n = __atomic_load_n(&s->n_waiting, __ATOMIC_ACQUIRE);

    if (n && n < LOST) {
        __atomic_store_n(&s->n_waiting, n + 1, __ATOMIC_RELAXED);
        return true;
    }
    return now_ns() < __atomic_load_n(&s->rest_until_ns, __ATOMIC_RELAXED);
}

static void
send_tick(struct state *s)
{
    int thread = __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE);

    if (thread <= 0 || !tick_signal)
        return;
    __atomic_store_n(&s->n_waiting, 1, __ATOMIC_RELEASE);
    /* EAGAIN: the user's other processes have all signals that may be queued;
     * the next tick tries again. */
    if (syscall(SYS_tgkill, getpid(), thread, tick_signal)) {
        __atomic_store_n(&s->n_waiting, 0, __ATOMIC_RELEASE);
        __atomic_store_n(&s->is_armed, ARMED_QUIETLY, __ATOMIC_RELEASE);
    }
}

/* The sample is taken when the sleep is over, if the hook is there, else at a
 * tick that finds the thread awake. */
static void
arm_quietly(struct state *s)
{
    uint32_t none = 0;

    __atomic_store_n(&s->has_slept, 1, __ATOMIC_RELEASE);
    __atomic_compare_exchange_n(&s->is_armed, &none, ARMED_QUIETLY, false,
                                __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* The state whose protected call is the deepest on this thread's stack. */
static struct state *
find_deepest(void)
{
    int self = tid();
    uintptr_t depth, least = 0;
    struct state *s, *found = NULL;

    for (s = __atomic_load_n(&states, __ATOMIC_ACQUIRE); s; s = s->next) {
        lua_State *L = __atomic_load_n(&s->running, __ATOMIC_ACQUIRE);

        if (__atomic_load_n(&s->tid, __ATOMIC_ACQUIRE) != self || !L)
            continue;
        depth = inside_depth(L);
        if (depth && (!found || depth < least)) {
            found = s;
            least = depth;
        }
    }
    return found;
}

struct state *
state_here(struct state *s)
{
    lua_State *L = __atomic_load_n(&s->running, __ATOMIC_ACQUIRE);
    struct state *deepest = find_deepest();

    if (deepest)
        return deepest;
    return L && __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE) == tid() &&
                   inside_runs_here(L)
               ? s
               : NULL;
}

void
state_arm(struct state *s)
{
    __atomic_store_n(&s->is_mixed, 1, __ATOMIC_RELEASE);
    if (__atomic_load_n(&cpprof_vm_spans, __ATOMIC_RELAXED))
        hook_for_instruction(s, s->running);
    else
        hook_for_tick(s, s->running);
}

static bool
scripts_are_profiled(void)
{
    return __atomic_load_n(&cpprof_vm_ticks, __ATOMIC_RELAXED) ||
           __atomic_load_n(&cpprof_vm_spans, __ATOMIC_RELAXED);
}

/* In a handler that interrupted the thread: a stack was put off for s. If
 * another state runs, its next safepoint is that of s, too; but not where the
 * time of s is counted, which would go on there. */
static void
interrupt_here(struct state *s)
{
    struct state *runs = state_here(s);

    if (!runs || is_idle(runs)) {
        s->is_not_it = true;
        return;
    }
    if (runs != s) {
        cpprof_vm_enter(runs->thread);
        if (scripts_are_profiled())
            s->is_not_it = true;
        else
            runs->waiting = s;
    }
    state_arm(runs);
}

/* One signal for one answer: who sleeps in a C function is not woken twice, and
 * not at all if it would notice. A thread that runs and does not answer may
 * have had its hook taken away. In mode SPAN this is the only signal. */
static void
interrupt(void *state)
{
    struct state *s = state;
    int thread = __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE);
    enum cpprof_vm_sleep sleep;
    bool is_only;

    if (thread <= 0)
        return;
    if (thread == tid()) {
        interrupt_here(s);
        return;
    }
    is_only = __atomic_load_n(&cpprof_vm_spans, __ATOMIC_RELAXED);
    if (!is_only && has_enough(s))
        return;
    sleep = is_only ? CPPROF_VM_AWAKE
                    : cpprof_vm_sleep_of(thread, &s->slept_cpu_ns);
    if (sleep == CPPROF_VM_ASLEEP_LIGHTLY)
        arm_quietly(s);
    else if (__atomic_exchange_n(&s->is_armed, ARMED, __ATOMIC_ACQ_REL) !=
                 ARMED ||
             sleep == CPPROF_VM_AWAKE)
        send_tick(s);
}

void
states_poke(void)
{
    struct state *s;

    for (s = __atomic_load_n(&states, __ATOMIC_ACQUIRE); s; s = s->next) {
        __atomic_store_n(&s->is_armed, ARMED, __ATOMIC_RELEASE);
        send_tick(s);
    }
}

static void
choose_signal(void)
{
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    struct sigaction there;
    int number;

    for (number = SIGRTMAX; number > SIGRTMAX - SIGNALS_TRIED; number--) {
        if (sigaction(number, NULL, &there) || there.sa_flags & SA_SIGINFO ||
            there.sa_handler != SIG_DFL)
            continue;
        if (!sigaction(number, &action, NULL))
            tick_signal = number;
        break;
    }
}

/* ---- the library ------------------------------------------------------- */

static const struct cpprof_vm_ops ops = {
    .size = sizeof ops,
    .name = "lua",
    .stack = walk_stack,
    .describe = describe_function,
    .interrupt = interrupt,
    .peek = peek_stack,
};

#if LUA_VERSION_NUM < 502
/* Only LuaJIT has it. */
extern int
luaJIT_setmode(lua_State *L, int index, int mode) __attribute__((weak));
#endif

/* LuaJIT is assembly code without a frame for each call, and what runs as
 * machine code is not in its stack: neither is to be had at any moment. */
static bool
can_mix(void)
{
#if LUA_VERSION_NUM < 502
    return !luaJIT_setmode;
#else
    return true;
#endif
}

static void
register_vm(void)
{
    static struct cpprof_vm_ops own;

    own = ops;
    if (!can_mix())
        own.peek = NULL;
    if (cpprof_vm_register(&own, &lua_vm, NULL) != CPPROF_OK)
        return;
    if (own.peek)
        run_loop_learn();
    choose_signal();
    pthread_atfork(NULL, NULL, forget_tid);
}

/* ---- states ------------------------------------------------------------ */

static struct state *
take_state(void)
{
    struct state *s;

    pthread_mutex_lock(&lock);
    for (s = states; s && __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE);
         s = s->next) {
    }
    if (!s && (s = calloc(1, sizeof *s))) {
        s->next = states;
        __atomic_store_n(&states, s, __ATOMIC_RELEASE);
    }
    if (s) {
        __atomic_store_n(&s->tid, TAKEN, __ATOMIC_RELAXED);
        s->serial++;
        __atomic_store_n(&s->running, NULL, __ATOMIC_RELEASE);
        s->is_armed = 0;
        s->has_slept = 0;
        s->n_waiting = 0;
        s->rest_until_ns = 0;
        s->is_mixed = 0;
        s->slept_cpu_ns = 0;
        s->stays = 0;
        s->resumed = NULL;
        s->uses_labels = false;
        s->is_left = false;
        s->looked = 0;
        s->is_not_it = false;
        s->waiting = NULL;
        s->own_labels = NULL;
        memset(&s->program, 0, sizeof s->program);
    }
    pthread_mutex_unlock(&lock);
    return s;
}

/* The handler must not find the state any more when the thread is freed. */
static void
close_state(struct state *s)
{
    struct cpprof_vm_thread *was = cpprof_vm_enter(NULL);

    if (was != s->thread)
        cpprof_vm_enter(was);
    __atomic_store_n(&s->is_armed, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&s->running, NULL, __ATOMIC_RELEASE);
    cpprof_vm_thread_free(s->thread);
    s->thread = NULL;
    functions_free(&s->functions);
    if (last == s)
        last_L = NULL;
    __atomic_store_n(&s->serial, s->serial + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&s->tid, 0, __ATOMIC_RELEASE);
}

static int
close_guard(lua_State *L)
{
    struct state **guard = lua_touserdata(L, 1);

    if (*guard) {
        lua_pushnil(L);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &state_key);
        close_state(*guard);
        *guard = NULL;
    }
    return 0;
}

/* What closes it when the state does. */
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

struct state *
state_open(lua_State *L)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct state **guard, *s = state_of(L);
    lua_State *main_L;

    if (s)
        return s;
    pthread_once(&once, register_vm);
    guard = push_guard(L);
    main_L = main_of(L);
    s = lua_vm ? take_state() : NULL;
    if (s && cpprof_vm_thread_new(lua_vm, s, &s->thread, NULL) != CPPROF_OK) {
        __atomic_store_n(&s->tid, 0, __ATOMIC_RELEASE);
        s = NULL;
    }
    if (!s) {
        luaL_error(L, "cpprof: out of memory");
        return NULL;
    }
    __atomic_store_n(&s->running, main_L, __ATOMIC_RELEASE);
    __atomic_store_n(&s->tid, tid(), __ATOMIC_RELEASE);
    *guard = s;
    lua_rawsetp(L, LUA_REGISTRYINDEX, &guard_key);
    lua_pushlightuserdata(L, s);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &state_key);
    cpprof_vm_enter(s->thread);
    return s;
}

static struct state *
look_up(lua_State *L)
{
    struct state *s;

    lua_rawgetp(L, LUA_REGISTRYINDEX, &state_key);
    s = lua_touserdata(L, -1);
    lua_pop(L, 1);
    if (!s)
        return NULL;
    /* A state may go on in another native thread. */
    if (s->tid != tid())
        __atomic_store_n(&s->tid, tid(), __ATOMIC_RELEASE);
    last_L = L;
    last = s;
    last_serial = s->serial;
    cpprof_vm_enter(s->thread);
    return s;
}

struct state *
state_of(lua_State *L)
{
    if (last_L == L &&
        last_serial == __atomic_load_n(&last->serial, __ATOMIC_RELAXED))
        return last;
    return look_up(L);
}
