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

/* Tunable: how long a hook of a mixed stack may take before it counts as dear,
 * if the one before did, too: a busy machine makes one of them long, a deep
 * stack each. */
#define HOOK_BUDGET_NS 50000

/* Tunable: ticks after which a signal that did not come is taken for lost, and
 * ticks after which we find out why. */
#define LOST  100
#define DOUBT 5

/* Bytes of /proc/self/task/TID/status that are read. */
#define STATUS_MAX 4096

static bool
spans_run(void)
{
    return load_relaxed(&cpprof_vm_running->spans);
}

static bool
is_profiled(void)
{
    return load_relaxed(&cpprof_vm_running->ticks) || spans_run();
}

/* ---- what runs --------------------------------------------------------- */

/* Does one of its functions run, or has one resumed another coroutine? */
static bool
has_frames(struct state *s, lua_State *L)
{
    lua_Debug ar;

    return load_relaxed(&s->resumed) || lua_getstack(L, 0, &ar);
}

/* Set the hook of s, which is held, if the calling thread `self` runs it. Where
 * Lua does not tell, s is where it was last. True: a function of s runs, and a
 * tick has asked it. */
static bool
look_at(struct state *s, lua_State *L, int self)
{
    bool was_here = load_acquire(&s->tid) == self;
    bool is_here = running_at_all(L) > 0 ? running_depth(L) > 0 : was_here;

    if (!is_here && was_here)
        store_release(&s->was_elsewhere, 1);
    if (!is_here)
        return false;
    if (!was_here)
        state_move_here(s);
    if (spans_run()) {
        store_relaxed(&s->is_armed, 0);
        hook_for_spans(s, L);
        return false;
    }
    if (!has_frames(s, L))
        return false;
    store_release(&s->is_armed, ARMED);
    hook_for_tick(s, L);
    return true;
}

/* Find the state that runs in this thread: the one whose protected call is the
 * deepest on its stack. It is charged for the time since the last look; if
 * there is none, nobody is. */
static void
look_around(void)
{
    struct state *s, *deepest = NULL;
    uintptr_t depth, least = 0; /* 0: not known */
    int self = own_thread();
    lua_State *L;

    for (s = states_first(); s; s = s->next) {
        if (!(L = state_hold(s)))
            continue;
        if (look_at(s, L, self)) {
            depth = running_depth(L);
            if (!deepest || (depth && (!least || depth < least))) {
                deepest = s;
                least = depth;
            }
        }
        state_drop(s);
    }
    if (spans_run())
        return;
    if (deepest && !deepest->is_left)
        cpprof_vm_thread_found(deepest->thread);
    for (s = states_first(); s && !deepest; s = s->next)
        if (load_acquire(&s->tid) == self && s->thread)
            cpprof_vm_thread_leave_out(s->thread, 0);
}

/* ---- the signal -------------------------------------------------------- */

static void
on_tick(int number)
{
    int saved = errno, self = own_thread();
    uint64_t begin = cpprof__now_ns(CLOCK_THREAD_CPUTIME_ID), rest;
    struct state *s;

    if (is_profiled())
        look_around();
    rest = REST * (cpprof__now_ns(CLOCK_THREAD_CPUTIME_ID) - begin) +
           cpprof__now_ns(CLOCK_MONOTONIC);
    for (s = states_first(); s; s = s->next) {
        if (load_acquire(&s->tid) != self)
            continue;
        store_relaxed(&s->rest_until_ns, rest);
        store_release(&s->n_waiting, 0);
        store_relaxed(&s->is_deaf, 0);
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

/* A slow handler of ours looks like a blocked signal. It clears the note when
 * it is done, or the next look does. */
static void
note_deaf(struct state *s, int thread)
{
    store_relaxed(&s->is_deaf, blocks_tick(thread));
}

/* Is the last signal still on its way, so that another would only queue behind
 * it, or would one more keep the thread from its work? */
static bool
has_enough(struct state *s, int thread)
{
    uint32_t n = load_acquire(&s->n_waiting);

    if (n && n < LOST) {
        if (n == DOUBT)
            note_deaf(s, thread);
        store_relaxed(&s->n_waiting, n + 1);
        return true;
    }
    return cpprof__now_ns(CLOCK_MONOTONIC) < load_relaxed(&s->rest_until_ns);
}

static void
send_tick(struct state *s, int thread)
{
    if (thread <= 0 || !tick_signal)
        return;
    store_release(&s->n_waiting, 1);
    /* EAGAIN: the user's other processes have all signals that may be queued;
     * the next tick tries again. */
    if (!syscall(SYS_tgkill, getpid(), thread, tick_signal))
        return;
    if (errno == ESRCH)
        cas_acq_rel(&s->tid, &thread, NOWHERE);
    store_release(&s->n_waiting, 0);
    store_release(&s->is_armed, ARMED_QUIETLY);
}

/* ---- asking ------------------------------------------------------------ */

/* The thread sleeps in a call that a signal would end. The sample is taken
 * after the sleep, if the hook is set, else at a tick that finds the thread
 * awake. */
static void
ask_sleeper(struct state *s, lua_State *L)
{
    uint32_t none = 0;

    if (running_at_all(L) == 0 && !has_frames(s, L)) {
        store_release(&s->host_ns, cpprof__now_ns(CLOCK_MONOTONIC));
        return;
    }
    store_release(&s->has_slept, 1);
    cas_acq_rel(&s->is_armed, &none, ARMED_QUIETLY);
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
    if (load_relaxed(&s->is_deaf))
        note_deaf(s, thread);
    sleep = cpprof_vm_read_sleep(thread, &s->slept_cpu_ns);
    if (sleep == CPPROF_VM_ASLEEP_LIGHTLY)
        ask_sleeper(s, L);
    else if ((swap_acq_rel(&s->is_armed, ARMED) != ARMED ||
              sleep == CPPROF_VM_AWAKE) &&
             !load_relaxed(&s->is_deaf))
        send_tick(s, thread);
}

/* In mode SPAN there is one signal, at the start, and one whenever the program
 * has put its own hook into the place of ours, or the host is at work: that may
 * be a coroutine that has no hook yet. */
static void
ask_for_spans(struct state *s, lua_State *L, int thread)
{
    uint32_t epoch = load_relaxed(&cpprof_vm_running->spans);
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
        depth = load_acquire(&s->tid) == self ? running_depth(L) : 0;
        if (depth && (!found || depth < least)) {
            found = s;
            least = depth;
        }
        state_drop(s);
    }
    return found;
}

struct state *
state_here(struct state *s)
{
    lua_State *L = load_acquire(&s->running);
    struct state *deepest = find_deepest();

    if (deepest)
        return deepest;
    return L && load_acquire(&s->tid) == own_thread() && running_here(L) ? s
                                                                         : NULL;
}

bool
state_arm(struct state *s)
{
    uint64_t begin = cpprof__now_ns(CLOCK_THREAD_CPUTIME_ID), took;
    bool was_dear = s->is_mixed_dear;

    if (cpprof__now_ns(CLOCK_MONOTONIC) < s->mixed_rest_until_ns)
        return false;
    store_release(&s->is_mixed, 1);
    if (spans_run())
        hook_for_instruction(s, s->running);
    else
        hook_for_tick(s, s->running);
    took = cpprof__now_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
    s->is_mixed_dear = took > HOOK_BUDGET_NS;
    if (was_dear && s->is_mixed_dear)
        s->mixed_rest_until_ns = cpprof__now_ns(CLOCK_MONOTONIC) + REST * took;
    return true;
}

/* A stack was put off for s, or its timer ticks. If another state runs, its
 * next safepoint is that of s, too; but not where the time of s is counted,
 * which would go on there. */
static void
interrupt_here(struct state *s)
{
    struct state *runs;

    if (load_relaxed(&cpprof_vm_running->ticks))
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
    int thread = load_acquire(&s->tid);
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
    state_drop(s);
}
