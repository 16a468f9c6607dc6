/* SPDX-License-Identifier: MIT */
/*
 * Ticks come as a signal to the thread that runs a state. There the handler
 * looks what runs: the state whose protected call is the deepest on the stack,
 * and in it the coroutine that its own resume has noted. If nothing does, the
 * host is at work, and the time since the last look is nobody's.
 *
 * A state may go on in another thread at any time, and nobody tells. That shows
 * in lua_State (running.c), and the handler leaves it alone: to look at what
 * another thread changes would be a race. No other thread is asked; the state
 * is known there from its next event or call of the module on.
 *
 * The signal is SIGURG, if it is free, whose default is to be ignored: one that
 * is on its way at an exec, which nobody need tell of, does the new program
 * nothing.
 */
#include "ticks.h"

#include "../../counter.h"
#include "../state/running.h"
#include "../state/state.h"
#include "hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The signals that are tried if SIGURG is in use: from the last real-time
 * signal down, because programs take them from the other end. */
#define SIGNALS_TRIED 8

/* lua_sethook visits every frame, twice for a sample. If there are a hundred
 * thousand frames, ticks come so much less often that this takes a percent or
 * two of the time. */
#define REST 100

/* Tunable: how long a hook of a mixed stack may take before it counts as dear.
 */
#define HOOK_BUDGET_NS 50000

/* Tunable: ticks after which a signal that did not come is taken for lost, and
 * ticks after which we find out why. */
#define LOST  100
#define DOUBT 5

/* Of /proc/self/task/TID/status, in bytes. */
#define STATUS_MAX 4096

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
    ELSEWHERE, /* another thread runs it, or it is not known that this one does
                */
    IDLE,      /* none of its functions runs: the host does something else */
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
    bool is_known = running_at_all(L) > 0;

    if (is_known && !running_depth(L))
        return ELSEWHERE;
    if (!is_known && __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE) != self)
        return ELSEWHERE;
    return has_frames(s, L) ? HERE : IDLE;
}

struct look {
    int self;
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

static void
look_for_ticks(struct look *look, struct state *s, lua_State *L)
{
    __atomic_store_n(&s->is_armed, ARMED, __ATOMIC_RELEASE);
    hook_for_tick(s, L);
    note_deepest(look, s, running_depth(L));
}

static void
look_for_spans(struct state *s, lua_State *L)
{
    __atomic_store_n(&s->is_armed, 0, __ATOMIC_RELAXED);
    hook_for_spans(s, L);
}

/* Held. */
static void
look_at(struct look *look, struct state *s, lua_State *L)
{
    enum situation situation = situation_of(s, L, look->self);
    bool is_known = __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE) == look->self;

    if (situation == ELSEWHERE) {
        if (is_known)
            __atomic_store_n(&s->was_elsewhere, 1, __ATOMIC_RELEASE);
        return;
    }
    if (!is_known)
        state_move_here(s);
    if (spans_run())
        look_for_spans(s, L);
    else if (situation == HERE)
        look_for_ticks(look, s, L);
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

/* The time since the last look is charged to whoever runs now. */
static void
give_time(const struct look *look)
{
    struct state *s;

    if (look->deepest && !look->deepest->is_left) {
        cpprof_vm_thread_found(look->deepest->thread);
        return;
    }
    for (s = states_first(); s && !look->deepest; s = s->next)
        if (__atomic_load_n(&s->tid, __ATOMIC_ACQUIRE) == look->self &&
            s->thread)
            cpprof_vm_thread_leave_out(s->thread, 0);
}

static void
look_around(void)
{
    struct look look = {.self = own_thread()};

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
        look_around();
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

/* Source: proc(5). */
static bool
blocks_tick(int thread)
{
    char path[64], text[STATUS_MAX];
    const char *found;
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/proc/self/task/%d/status", thread);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    found = strstr(text, "\nSigBlk:");
    return found && strtoull(found + 8, NULL, 16) >> (tick_signal - 1) & 1;
}

/* Also where a handler of ours is slow: that says otherwise when it is done, or
 * the next look does. */
static void
note_deaf(struct state *s, int thread)
{
    __atomic_store_n(&s->is_deaf, blocks_tick(thread), __ATOMIC_RELAXED);
}

static bool
is_deaf(struct state *s)
{
    return __atomic_load_n(&s->is_deaf, __ATOMIC_RELAXED);
}

/* Is the last signal still on its way, so that another would only queue behind
 * it, or would one more keep the thread from its work? */
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

/* The sample is taken after the sleep, if the hook is set, else at a tick that
 * finds the thread awake. */
static void
arm_quietly(struct state *s)
{
    uint32_t none = 0;

    __atomic_store_n(&s->has_slept, 1, __ATOMIC_RELEASE);
    __atomic_compare_exchange_n(&s->is_armed, &none, ARMED_QUIETLY, false,
                                __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* The thread sleeps in a call that a signal would end. */
static void
ask_sleeper(struct state *s, lua_State *L)
{
    if (running_at_all(L) == 0 && !has_frames(s, L))
        __atomic_store_n(&s->host_ns, clock_ns(CLOCK_MONOTONIC),
                         __ATOMIC_RELEASE);
    else
        arm_quietly(s);
}

/* One signal for one answer: a thread that sleeps in a C function is not woken
 * twice, and not at all if it would notice. If a running thread does not
 * answer, its hook may have been removed. */
static void
ask(struct state *s, lua_State *L, int thread)
{
    enum cpprof_vm_sleep sleep;

    if (thread < 0 || has_enough(s, thread))
        return;
    if (is_deaf(s))
        note_deaf(s, thread);
    sleep = cpprof_vm_read_sleep(thread, &s->slept_cpu_ns);
    if (sleep == CPPROF_VM_ASLEEP_LIGHTLY)
        ask_sleeper(s, L);
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
    if (hook_is_for_spans(L) || thread < 0)
        return;
    if (is_first ||
        cpprof_vm_read_sleep(thread, &s->slept_cpu_ns) == CPPROF_VM_AWAKE)
        send_tick(s, thread);
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
                    ? running_depth(L)
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
                   running_here(L)
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
        look_around();
    runs = state_here(s);
    if (!runs || !has_frames(runs, runs->running)) {
        s->is_not_it = true;
        return;
    }
    if (runs != s) {
        cpprof_vm_thread_enter(runs->thread);
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
