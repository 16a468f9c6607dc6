/* SPDX-License-Identifier: MIT */
/*
 * Interpreters, the list of their threads, and which of these the calling
 * native thread runs.
 *
 * Interpreters are never removed, so a pointer to one stays good without a
 * lock. The list of threads is guarded by cpprof__vm_threads_lock. A thread
 * that a native thread has left without saying so goes to `kept` when it ends
 * instead of being freed: that native thread may still compare pointers with
 * it. Such memory is only ever used again for another thread.
 */
#include "own/memory.h"

#include "arch/place.h"
#include "vm/load/process.h"
#include "vm/state/vm.h"

#include "base/options.h"
#include "base/status.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/uncancelled.h"
#include "vm/profile/count.h"
#include "vm/profile/session.h"
#include "vm/profile/timers.h"
#include "vm/stacks/interp_frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cpprof__own_lock cpprof__vm_threads_lock CPPROF__AT_START;
struct cpprof__vm_thread *cpprof__vm_threads;
static struct cpprof__vm_thread *kept; /* under the same lock */
static struct cpprof_vm *vms; /* only grows, so that it can be reached */

__thread struct cpprof_vm_thread *cpprof__vm_current;

struct cpprof_vm *
cpprof__vm_first(void)
{
    return load_acquire(&vms);
}

static enum cpprof_status
read_ops(const struct cpprof_vm_ops *given, struct cpprof_vm_ops *ops,
         struct cpprof_error *error)
{
    enum cpprof_status status =
        cpprof__options(ops, sizeof *ops, given, "cpprof_vm_ops", error);

    if (status == CPPROF_OK &&
        (!given || !ops->name || !ops->stack || !ops->describe))
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "an interpreter needs .name, .stack, .describe");
    return status;
}

enum cpprof_status
cpprof_vm_new(const struct cpprof_vm_ops *ops, struct cpprof_vm **vm,
              struct cpprof_error *error)
{
    CPPROF__NEED(error, ops && vm);

    struct cpprof_vm *made;
    struct cpprof_vm_ops all = {0};
    enum cpprof_status status = read_ops(ops, &all, error);
    size_t n;
    CPPROF__EXEMPT;

    if (status != CPPROF_OK)
        return status;
    n = strlen(all.name) + sizeof "[]";
    made = cpprof__calloc(1, sizeof *made + n);
    if (!made)
        return cpprof__fail_nomem(error);
    made->ops = all;
    made->mapping = (char *)(made + 1);
    snprintf(made->mapping, n, "[%s]", all.name);
    made->next = load_relaxed(&vms);
    while (!cas_acq_rel(&vms, &made->next, made))
        continue;
    if (made->ops.peek)
        cpprof__vm_mix_begin();
    *vm = made;
    return CPPROF_OK;
}

static void
link_thread(struct cpprof__vm_thread *t)
{
    cpprof__own_lock_take(&cpprof__vm_threads_lock);
    t->next = cpprof__vm_threads;
    t->at = &cpprof__vm_threads;
    if (t->next)
        t->next->at = &t->next;
    cpprof__vm_threads = t;
    cpprof__own_lock_give(&cpprof__vm_threads_lock);
}

static struct cpprof__vm_thread *
take_kept(void)
{
    struct cpprof__vm_thread *t;

    cpprof__own_lock_take(&cpprof__vm_threads_lock);
    t = kept;
    if (t)
        kept = t->next;
    cpprof__own_lock_give(&cpprof__vm_threads_lock);
    return t;
}

enum cpprof_status
cpprof_vm_thread_new(struct cpprof_vm *vm, void *thread,
                     struct cpprof_vm_thread **t, struct cpprof_error *error)
{
    CPPROF__NEED(error, vm && t);

    struct cpprof__vm_thread *made;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    made = take_kept();
    if (!made)
        made = cpprof__calloc(1, sizeof *made);
    if (!made)
        return cpprof__fail_nomem(error);
    made->vm = vm;
    made->thread = thread;
    link_thread(made);
    *t = &made->public;
    cpprof__vm_thread_made();
    return CPPROF_OK;
}

void
cpprof_vm_thread_set_tid(struct cpprof_vm_thread *t, int32_t tid)
{
    if (t)
        cpprof__vm_inside(t)->tid = tid;
}

/* ---- entering --------------------------------------------------------- */

/* Who entered it last is its runner: another native thread may have since. */
struct cpprof_vm_thread *
cpprof__vm_entered(void)
{
    struct cpprof__vm_thread *t = cpprof__vm_inside(cpprof__vm_current);

    return t && load_relaxed(&t->runner) == (uintptr_t)&cpprof__self
               ? &t->public
               : NULL;
}

struct cpprof_vm_thread *
cpprof_vm_thread_enter(struct cpprof_vm_thread *public)
{
    struct cpprof_vm_thread *before = cpprof__vm_entered();
    struct cpprof__vm_thread *from = cpprof__vm_inside(before);
    struct cpprof__vm_thread *to = cpprof__vm_inside(public);
    uintptr_t self = (uintptr_t)&cpprof__self;

    if (before == public && cpprof__vm_current == public)
        return before;
    if (to && load_relaxed(&to->runner) && load_relaxed(&to->runner) != self)
        to->has_moved = true;
    cpprof__vm_current = public;
    if (__builtin_expect(load_relaxed(&cpprof__vm_active), 0))
        cpprof__vm_switch(from, to);
    if (from) {
        store_relaxed(&from->runner, (uintptr_t)0);
        store_relaxed(&from->is_entered, 0u);
    }
    if (to) {
        store_relaxed(&to->was_entered, 1u);
        store_relaxed(&to->runner, self);
        store_relaxed(&to->is_entered, 1u);
    }
    return before;
}

/* ---- the end of a thread ---------------------------------------------- */

/* The uncharged time of t goes to the next thread of the interpreter: threads
 * that live for less than a quantum each may together take all the time. */
static void
leave_rest(struct cpprof__vm_thread *t)
{
    uint32_t epoch = load_acquire(&cpprof__vm_active);
    const struct cpprof__vm_clock *clock = cpprof__vm_clock_of(t);

    if (epoch && clock->epoch == epoch && clock->span_ns)
        add_relaxed(&t->vm->orphan_ns, clock->span_ns);
}

void
cpprof_vm_thread_free(struct cpprof_vm_thread *public)
{
    struct cpprof__vm_thread *t = cpprof__vm_inside(public);
    bool is_kept;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    if (!t)
        return;
    if (cpprof__vm_entered() == public)
        cpprof_vm_thread_enter(NULL);
    if (cpprof__vm_current == public) /* it was left in another way */
        cpprof__vm_current = NULL;
    cpprof__own_lock_take(&cpprof__vm_threads_lock);
    cpprof__vm_flush_end(t); /* under the lock: see flush_all() */
    *t->at = t->next;
    if (t->next)
        t->next->at = t->at;
    leave_rest(t);
    cpprof__vm_timer_end(t);
    is_kept = t->has_moved || load_relaxed(&t->runner);
    if (is_kept) {
        memset(t, 0, sizeof *t);
        t->next = kept;
        kept = t;
    }
    cpprof__own_lock_give(&cpprof__vm_threads_lock);
    if (!is_kept)
        cpprof__free(t);
}

uint64_t
cpprof__vm_take_orphans(void)
{
    struct cpprof_vm *vm = load_acquire(&vms);
    uint64_t sum = 0;

    for (; vm; vm = vm->next)
        sum += swap_acq_rel(&vm->orphan_ns, (uint64_t)0);
    return sum;
}

void
cpprof_vm_forget_function(struct cpprof_vm *vm, const void *function)
{
    if (__builtin_expect(load_relaxed(&cpprof__vm_active), 0) && vm)
        cpprof__vm_session_forget(vm, function);
}
