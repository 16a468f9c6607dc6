/* SPDX-License-Identifier: MIT */
/*
 * Own threads with a period: one writes what was sampled, one asks
 * interpreters for samples.
 *
 * Each turn comes at a random moment of its own period. A fixed pace would see
 * periodic work of the program always or never. A worker that is told to stop
 * ends after the turn that it is in; so does one that finds that no thread of
 * the program is left.
 */
#include "vm/profile/ticker.h"

#include "collect/runtime/own_threads.h"
#include "vm/profile/timers.h"
#include "vm/state/vm.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Below n, which is not 0. */
static uint64_t
draw(struct cpprof__vm_worker *w, uint64_t n)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random % n;
}

/* False: the worker is to end. */
static bool
sleep_until(struct cpprof__vm_worker *w, uint64_t until)
{
    while (!load_acquire(&w->finish)) {
        uint64_t now = cpprof__now_ns(CLOCK_MONOTONIC);
        struct timespec timeout;

        if (now >= until || load_acquire(w->wake))
            return true;
        timeout = cpprof__timespec_of(until - now);
        syscall(SYS_futex, w->wake, FUTEX_WAIT_PRIVATE, 0, &timeout, NULL, 0);
    }
    return false;
}

static bool
run(void *arg)
{
    struct cpprof__vm_worker *w = arg;
    uint64_t begin = cpprof__now_ns(CLOCK_MONOTONIC), now;

    w->random = begin | 1;
    while (sleep_until(w, begin + draw(w, w->period_ns))) {
        w->turn(w);
        if (cpprof__own_thread_must_leave())
            return true;
        begin += w->period_ns;
        now = cpprof__now_ns(CLOCK_MONOTONIC);
        if (now > begin + 2 * w->period_ns)
            begin = now; /* the process was stopped, or has no processor */
    }
    return false;
}

int
cpprof__vm_worker_start(struct cpprof__vm_worker *w)
{
    w->finish = 0;
    if (!w->wake)
        w->wake = &w->no_wake;
    store_relaxed(w->wake, 0u);
    w->thread = (struct cpprof__own_thread){
        .name = w->name, .run = run, .arg = w, .wake = w->wake};
    return cpprof__own_thread_start(&w->thread);
}

void
cpprof__vm_worker_stop(struct cpprof__vm_worker *w)
{
    store_release(&w->finish, 1u);
    store_release(w->wake, 1u);
    syscall(SYS_futex, w->wake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    cpprof__own_thread_join(&w->thread, UINT64_MAX);
}

/* ---- ticks ------------------------------------------------------------ */

/* CPU time is charged to the stack with which a thread answers. A sleeping
 * thread would charge it to its sleep. */
static bool
is_asleep(struct cpprof__vm_thread *t)
{
    int32_t tid = t->tid ? t->tid : load_relaxed(&t->entered_in);

    return load_relaxed(&cpprof__vm_mode) == CPPROF_VM_MODE_CPU && tid &&
           cpprof_vm_read_sleep(tid, &t->slept_cpu_ns) != CPPROF_VM_AWAKE;
}

/* Is t not asked? is_first: at the start of a session in mode SPAN. */
static bool
is_out(const struct cpprof__vm_thread *t, bool is_first)
{
    const struct cpprof_vm *only = load_relaxed(&cpprof__vm_only);

    if (only && only != t->vm)
        return true;
    if (t->vm->ops.flags & CPPROF_VM_FINDS)
        return false;
    return (!load_relaxed(&t->is_entered) && load_relaxed(&t->was_entered)) ||
           (!is_first && load_relaxed(&cpprof__vm_mode) == CPPROF_VM_MODE_SPAN);
}

/* A thread with a timer is asked by that. If it is never entered .interrupt is
 * called nevertheless: whoever holds the interpreter's lock looks for new
 * threads then. */
static void
ask(struct cpprof__vm_thread *t, bool is_first)
{
    bool is_timed;

    if (is_out(t, is_first))
        return;
    store_relaxed(&t->n_asked, load_relaxed(&t->n_asked) + 1);
    is_timed = cpprof__vm_is_timed(t);
    if (is_timed ? !t->tid : is_asleep(t))
        return;
    if (!is_timed)
        store_relaxed(&t->public.due, 1u);
    if (t->vm->ops.interrupt)
        t->vm->ops.interrupt(t->thread);
}

/* The lock of the list is held, so that no thread is freed meanwhile. */
void
cpprof__vm_tick(struct cpprof__vm_worker *worker)
{
    struct cpprof__vm_thread *t;

    cpprof__vm_timers_look_after();
    cpprof__own_lock_take(&cpprof__vm_threads_lock);
    for (t = cpprof__vm_threads; t; t = t->next)
        ask(t, !worker);
    cpprof__own_lock_give(&cpprof__vm_threads_lock);
}
