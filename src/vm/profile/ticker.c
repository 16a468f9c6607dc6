/* SPDX-License-Identifier: MIT */
/* Asks interpreters for samples. */
#include "vm/profile/ticker.h"

#include "vm/profile/timers.h"
#include "vm/state/vm.h"

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
cpprof__vm_tick(struct cpprof__periodic *ticker)
{
    struct cpprof__vm_thread *t;

    cpprof__vm_timers_look_after();
    cpprof__own_lock_take(&cpprof__vm_threads_lock);
    for (t = cpprof__vm_threads; t; t = t->next)
        ask(t, !ticker);
    cpprof__own_lock_give(&cpprof__vm_threads_lock);
}
