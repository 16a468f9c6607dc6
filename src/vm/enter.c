/* SPDX-License-Identifier: MIT */
/* Which stack of an interpreter a native thread runs. */
#include "vm/vm.h"

__thread struct cpprof_vm_thread *cpprof__vm_current;

static void
note_entered(struct cpprof__vm_thread *t, bool entered)
{
    if (!t)
        return;
    if (entered)
        store_relaxed(&t->was_entered, 1u);
    store_relaxed(&t->is_entered, (uint32_t)entered);
}

struct cpprof_vm_thread *
cpprof_vm_enter(struct cpprof_vm_thread *t)
{
    struct cpprof_vm_thread *before = cpprof__vm_current;

    if (before == t)
        return before;
    cpprof__vm_current = t;
    if (__builtin_expect(load_relaxed(&cpprof__vm_active), 0))
        cpprof__vm_switch(cpprof__vm_inside(before), cpprof__vm_inside(t));
    note_entered(cpprof__vm_inside(before), false);
    note_entered(cpprof__vm_inside(t), true);
    return before;
}
