/* SPDX-License-Identifier: MIT */
/* Threads of interpreters' modules that serve profiles. */
#include <cpprof/vm.h>

#include "collect/runtime/own_threads.h"
#include "collect/signal/heap/heap.h"

/* No end of a function ends what is exempt here: that is the thread's own. */
void
cpprof_vm_own_thread_begin(void)
{
    cpprof__hook_self.exempt++;
    cpprof__own_thread_begin();
}

void
cpprof_vm_own_thread_end(void)
{
    cpprof__own_thread_end();
}
