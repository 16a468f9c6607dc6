/* SPDX-License-Identifier: MIT */
/* Which stack of an interpreter a native thread runs. */
#include "vm/profile/count.h"
#include "vm/state/vm.h"

__thread struct cpprof_vm_thread *cpprof__vm_current;

static void
note_entered(struct cpprof__vm_thread *t, bool entered)
{
    if (!t)
        return;
    if (entered)
        store_relaxed(&t->was_entered, 1u);
    store_relaxed(&t->runner, entered ? (uintptr_t)&cpprof__self : 0);
    store_relaxed(&t->is_entered, (uint32_t)entered);
}

/* What the calling native thread entered last, if no other has since. */
struct cpprof_vm_thread *
cpprof__vm_entered(void)
{
    struct cpprof__vm_thread *t = cpprof__vm_inside(cpprof__vm_current);

    return t && load_relaxed(&t->runner) == (uintptr_t)&cpprof__self
               ? &t->public
               : NULL;
}

static void
note_move(struct cpprof__vm_thread *t)
{
    uintptr_t runner = t ? load_relaxed(&t->runner) : 0;

    if (runner && runner != (uintptr_t)&cpprof__self)
        t->has_moved = true;
}

struct cpprof_vm_thread *
cpprof_vm_thread_enter(struct cpprof_vm_thread *t)
{
    struct cpprof_vm_thread *before = cpprof__vm_entered();

    if (before == t && cpprof__vm_current == t)
        return before;
    note_move(cpprof__vm_inside(t));
    cpprof__vm_current = t;
    if (__builtin_expect(load_relaxed(&cpprof__vm_active), 0))
        cpprof__vm_switch(cpprof__vm_inside(before), cpprof__vm_inside(t));
    note_entered(cpprof__vm_inside(before), false);
    note_entered(cpprof__vm_inside(t), true);
    return before;
}
