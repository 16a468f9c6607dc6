/* SPDX-License-Identifier: MIT */
/*
 * Ticks come as a signal to the thread that runs a state. There the handler
 * looks what runs: the state whose protected call is the deepest on the stack,
 * and in it the coroutine that its own resume has noted, or, where the host
 * resumed one, the innermost that is found on the stack. If nothing does, the
 * host is at work, and the time since the last look is nobody's.
 *
 * A state may go on in another thread at any time, and nobody tells. Then the
 * handler leaves it alone: to look at what another thread changes would be a
 * race. That it is elsewhere shows in lua_State (inside.c); then the threads
 * that run are sent the signal (search.c), and the one that has it on its stack
 * keeps it.
 *
 * The signal is SIGURG, if it is free, whose default is to be ignored: one that
 * is on its way at an exec, which nobody need tell of, does the new program
 * nothing.
 */
#include "../counter.h"
#include "state.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Signals that are tried when SIGURG is taken, from the last real-time one
 * down: who takes any begins at the other end. */
#define SIGNALS_TRIED 8

/* lua_sethook looks at every frame there is, twice for a sample. Where they are
 * a hundred thousand, ticks come as much less often as keeps that at a percent
 * or two of the time. */
#define REST 100

/* Tunable: what a hook of a mixed stack may take before it counts as that. */
#define HOOK_BUDGET_NS 50000

/* Tunable: ticks after which a signal that did not come is taken for lost, and
 * after which it is looked at why. */
#define LOST  100
#define DOUBT 5

/* Tunable: ticks between searches for the same state, at first and at most. */
#define SEARCH_FIRST 2
#define SEARCH_MOST  128

static int tick_signal; /* 0: none is free */

static bool
spans_run(void)
{
    return __atomic_load_n(&cpprof_vm_spans, __ATOMIC_RELAXED);
}

static bool
is_profiled(void)
{
    return __atomic_load_n(&cpprof_vm_ticks, __ATOMIC_RELAXED) || spans_run();
}

/* ---- what runs --------------------------------------------------------- */

enum situation {
    ELSEWHERE, /* another thread runs it, or nobody says that this one does */
    IDLE,      /* no function of it is there: the host does something else */
    HERE,
};

static bool
has_frames(struct state *s, lua_State *L)
{
    lua_Debug ar;

    return __atomic_load_n(&s->resumed, __ATOMIC_RELAXED) ||
           lua_getstack(L, 0, &ar);
}

/* Held, in the thread self. */
static enum situation
situation_of(struct state *s, lua_State *L, int self)
{
    bool is_known = inside_is_run(L) > 0;

    if (is_known && !inside_depth(L))
        return ELSEWHERE;
    if (!is_known && __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE) != self)
        return ELSEWHERE;
    return has_frames(s, L) ? HERE : IDLE;
}

struct look {
    int self;
    uintptr_t low;         /* of the stack that was interrupted */
    struct state *deepest; /* NULL: the host runs */
    uintptr_t depth;       /* 0: it is not known */
};

static void
note_deepest(struct look *look, struct state *s, uintptr_t depth)
{
    if (look->deepest && (!depth || (look->depth && look->depth < depth)))
        return;
    look->deepest = s;
    look->depth = depth;
}

/* A tick that was not answered although the thread runs: a coroutine of which
 * nobody told may be at it. */
static bool
is_silent(struct state *s, lua_State *L)
{
    return __atomic_load_n(&s->is_armed, __ATOMIC_ACQUIRE) == ARMED &&
           hook_is_for_ticks(L);
}

static void
arm(struct state *s, lua_State *L)
{
    __atomic_store_n(&s->is_armed, ARMED, __ATOMIC_RELEASE);
    hook_for_tick(s, L);
}

static void
look_for_ticks(struct look *look, struct state *s, lua_State *L, bool is_idle)
{
    lua_State *inner =
        is_idle || is_silent(s, L) ? scan_stack(L, look->low) : NULL;

    if (!is_idle)
        arm(s, L);
    if (inner)
        arm(s, inner);
    if (inner || !is_idle)
        note_deepest(look, s, inside_depth(inner ? inner : L));
}

static void
look_for_spans(struct look *look, struct state *s, lua_State *L, bool is_idle)
{
    lua_State *inner = is_idle ? scan_stack(L, look->low) : NULL;

    __atomic_store_n(&s->is_armed, 0, __ATOMIC_RELAXED);
    hook_for_spans(s, L);
    if (inner)
        hook_for_spans(s, inner);
}

/* Held. */
static void
look_at(struct look *look, struct state *s, lua_State *L)
{
    enum situation situation = situation_of(s, L, look->self);
    bool is_known = __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE) == look->self;

    if (situation == ELSEWHERE) {
        if (is_known)
            __atomic_store_n(&s->is_elsewhere, 1, __ATOMIC_RELEASE);
        return;
    }
    if (!is_known)
        state_move_here(s);
    if (spans_run())
        look_for_spans(look, s, L, situation == IDLE);
    else
        look_for_ticks(look, s, L, situation == IDLE);
}

static void
look_at_all(struct look *look)
{
    struct state *s;
    lua_State *L;

    for (s = states_first(); s; s = s->next) {
        if (!(L = state_hold(s)))
            continue;
        look_at(look, s, L);
        state_let_go(s);
    }
}

/* The time since the last look is that of who runs now. */
static void
give_time(const struct look *look)
{
    struct state *s;

    if (look->deepest && !look->deepest->is_left) {
        cpprof_vm_found(look->deepest->thread);
        return;
    }
    for (s = states_first(); s && !look->deepest; s = s->next)
        if (__atomic_load_n(&s->tid, __ATOMIC_ACQUIRE) == look->self &&
            s->thread)
            cpprof_vm_leave_out(s->thread, 0);
}

static void
look_around(uintptr_t low)
{
    struct look look = {.self = own_thread(), .low = low};

    look_at_all(&look);
    if (!spans_run())
        give_time(&look);
}

/* ---- the signal -------------------------------------------------------- */

static void
on_tick(int number)
{
    int saved = errno, self = own_thread();
    uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID), rest;
    struct state *s;

    if (is_profiled())
        look_around((uintptr_t)__builtin_frame_address(0));
    rest = REST * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin) +
           clock_ns(CLOCK_MONOTONIC);
    for (s = states_first(); s; s = s->next) {
        if (__atomic_load_n(&s->tid, __ATOMIC_ACQUIRE) != self)
            continue;
        __atomic_store_n(&s->rest_until_ns, rest, __ATOMIC_RELAXED);
        __atomic_store_n(&s->n_waiting, 0, __ATOMIC_RELEASE);
        __atomic_store_n(&s->is_deaf, 0, __ATOMIC_RELAXED);
    }
    errno = saved;
}

bool
tick_is_blocked(void)
{
    sigset_t mask;

    return tick_signal && !pthread_sigmask(SIG_BLOCK, NULL, &mask) &&
           sigismember(&mask, tick_signal) > 0;
}

static bool
take_signal(int number)
{
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    struct sigaction there;

    if (sigaction(number, NULL, &there) || there.sa_flags & SA_SIGINFO ||
        there.sa_handler != SIG_DFL || sigaction(number, &action, NULL))
        return false;
    tick_signal = number;
    return true;
}

void
tick_begin(void)
{
    int number = SIGRTMAX;

    if (take_signal(SIGURG))
        return;
    while (number > SIGRTMAX - SIGNALS_TRIED && !take_signal(number))
        number--;
}

/* Also where a handler of ours is slow: that says otherwise when it is done, or
 * the next look does. */
static void
note_deaf(struct state *s, int thread)
{
    __atomic_store_n(&s->is_deaf, search_is_blocked(thread, tick_signal),
                     __ATOMIC_RELAXED);
}

static bool
is_deaf(struct state *s)
{
    return __atomic_load_n(&s->is_deaf, __ATOMIC_RELAXED);
}

/* Is the last signal on its way, so that another would only queue up behind it,
 * or would one more keep the thread from its work? */
static bool
has_enough(struct state *s, int thread)
{
    uint32_t n = __atomic_load_n(&s->n_waiting, __ATOMIC_ACQUIRE);

    if (n && n < LOST) {
        if (n == DOUBT)
            note_deaf(s, thread);
        __atomic_store_n(&s->n_waiting, n + 1, __ATOMIC_RELAXED);
        return true;
    }
    return clock_ns(CLOCK_MONOTONIC) <
           __atomic_load_n(&s->rest_until_ns, __ATOMIC_RELAXED);
}

static void
send_tick(struct state *s, int thread)
{
    if (thread <= 0 || !tick_signal)
        return;
    __atomic_store_n(&s->n_waiting, 1, __ATOMIC_RELEASE);
    /* EAGAIN: the user's other processes have all signals that may be queued;
     * the next tick tries again. */
    if (!syscall(SYS_tgkill, getpid(), thread, tick_signal))
        return;
    if (errno == ESRCH)
        __atomic_compare_exchange_n(&s->tid, &thread, NOWHERE, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    __atomic_store_n(&s->n_waiting, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&s->is_armed, ARMED_QUIETLY, __ATOMIC_RELEASE);
}

/* ---- asking ------------------------------------------------------------ */

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

/* Who runs it is among the threads that run; if it sleeps there, it is found
 * later. */
static void
search(struct state *s, int not )
{
    if (s->n_until_search) {
        s->n_until_search--;
        return;
    }
    s->n_between = s->n_between ? 2 * s->n_between : SEARCH_FIRST;
    if (s->n_between > SEARCH_MOST)
        s->n_between = SEARCH_MOST;
    s->n_until_search = s->n_between;
    if (tick_signal)
        search_threads(tick_signal, not );
}

/* The thread sleeps in a call that a signal would end. */
static void
ask_sleeper(struct state *s, lua_State *L, int thread)
{
    int is_run = inside_is_run(L);

    if (is_run == 0 && !has_frames(s, L)) {
        __atomic_store_n(&s->host_ns, clock_ns(CLOCK_MONOTONIC),
                         __ATOMIC_RELEASE);
        return;
    }
    arm_quietly(s);
    if (is_run > 0)
        search(s, thread);
}

/* One signal for one answer: who sleeps in a C function is not woken twice, and
 * not at all if it would notice. A thread that runs and does not answer may
 * have had its hook taken away. */
static void
ask(struct state *s, lua_State *L, int thread)
{
    enum cpprof_vm_sleep sleep;

    if (has_enough(s, thread))
        return;
    if (inside_is_run(L) > 0 &&
        (thread < 0 || __atomic_load_n(&s->is_elsewhere, __ATOMIC_ACQUIRE)))
        search(s, thread);
    if (thread < 0)
        return;
    if (is_deaf(s))
        note_deaf(s, thread);
    sleep = cpprof_vm_sleep_of(thread, &s->slept_cpu_ns);
    if (sleep == CPPROF_VM_ASLEEP_LIGHTLY)
        ask_sleeper(s, L, thread);
    else if ((__atomic_exchange_n(&s->is_armed, ARMED, __ATOMIC_ACQ_REL) !=
                  ARMED ||
              sleep == CPPROF_VM_AWAKE) &&
             !is_deaf(s))
        send_tick(s, thread);
}

/* In mode SPAN there is one signal, at the start, and one whenever the program
 * has put its own hook into the place of ours, or the host is at work: that may
 * be a coroutine that has no hook yet. */
static void
ask_for_spans(struct state *s, lua_State *L, int thread)
{
    uint32_t epoch = __atomic_load_n(&cpprof_vm_spans, __ATOMIC_RELAXED);
    bool is_first = s->span_epoch != epoch;

    s->span_epoch = epoch;
    if (hook_is_for_spans(L) && (inside_is_run(L) || has_frames(s, L)))
        return;
    if (thread < 0) {
        if (inside_is_run(L) > 0)
            search(s, thread);
    } else if (is_first || cpprof_vm_sleep_of(thread, &s->slept_cpu_ns) ==
                               CPPROF_VM_AWAKE) {
        if (!is_first && __atomic_load_n(&s->is_elsewhere, __ATOMIC_ACQUIRE))
            search(s, thread);
        send_tick(s, thread);
    }
}

/* ---- in handlers of others --------------------------------------------- */

/* The state whose protected call is the deepest on this thread's stack. */
static struct state *
find_deepest(void)
{
    int self = own_thread();
    uintptr_t depth, least = 0;
    struct state *s, *found = NULL;

    for (s = states_first(); s; s = s->next) {
        lua_State *L = state_hold(s);

        if (!L)
            continue;
        depth = __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE) == self
                    ? inside_depth(L)
                    : 0;
        if (depth && (!found || depth < least)) {
            found = s;
            least = depth;
        }
        state_let_go(s);
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
    return L && __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE) == own_thread() &&
                   inside_runs_here(L)
               ? s
               : NULL;
}

bool
state_arm(struct state *s)
{
    uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID), took;

    if (clock_ns(CLOCK_MONOTONIC) < s->mixed_rest_until_ns)
        return false;
    __atomic_store_n(&s->is_mixed, 1, __ATOMIC_RELEASE);
    if (spans_run())
        hook_for_instruction(s, s->running);
    else
        hook_for_tick(s, s->running);
    took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
    if (took > HOOK_BUDGET_NS)
        s->mixed_rest_until_ns = clock_ns(CLOCK_MONOTONIC) + REST * took;
    return true;
}

/* A stack was put off for s, or its timer ticks. If another state runs, its
 * next safepoint is that of s, too; but not where the time of s is counted,
 * which would go on there. */
static void
interrupt_here(struct state *s)
{
    struct state *runs;

    if (__atomic_load_n(&cpprof_vm_ticks, __ATOMIC_RELAXED))
        look_around((uintptr_t)__builtin_frame_address(0));
    runs = state_here(s);
    if (!runs || !has_frames(runs, runs->running)) {
        s->is_not_it = true;
        return;
    }
    if (runs != s) {
        cpprof_vm_enter(runs->thread);
        if (is_profiled())
            s->is_not_it = true;
        else
            runs->waiting = s;
    }
    /* Else the stack goes as it is. */
    s->is_not_it = !state_arm(runs);
}

void
tick_interrupt(void *state)
{
    struct state *s = state;
    int thread = __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE);
    lua_State *L;

    if (!thread || thread == TAKEN)
        return;
    if (thread == own_thread()) {
        interrupt_here(s);
        return;
    }
    if (!(L = state_hold(s)))
        return;
    if (spans_run())
        ask_for_spans(s, L, thread);
    else
        ask(s, L, thread);
    state_let_go(s);
}
