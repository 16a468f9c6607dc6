/* SPDX-License-Identifier: MIT */
/*
 * What modules of interpreters need to know of native threads, and to tell of
 * them: whether a signal would cut a sleep short, and that a thread belongs to
 * the profiler. The kernel says which call a sleeping thread is in. Where it
 * does not, no sleep is disturbed.
 */
#include "vm/state/vm.h"

#include "collect/dump/blocked_thread.h"
#include "collect/runtime/own_threads.h"
#include "collect/signal/heap/heap.h"

#include <errno.h>
#include <unistd.h>

/* Tunable: a thread that waits for a processor and has used less CPU time than
 * this since its last sleep may be at the end of another sleep. More delays the
 * ticks of working threads on a busy machine; less wakes more sleepers. */
#define GRACE_NS 1000000

/* Has the kernel the files that cpprof__task_call() reads? */
static bool
tells_calls(void)
{
    static uint32_t known; /* 1: no, 2: yes */
    uint32_t answer = load_relaxed(&known);

    if (!answer) {
        answer = access("/proc/self/syscall", R_OK) ? 1 : 2;
        store_relaxed(&known, answer);
    }
    return answer == 2;
}

static enum cpprof_vm_sleep
look(int32_t tid)
{
    struct cpprof__task_call call;
    struct cpprof__task task;

    if (!tells_calls())
        return cpprof__task_look(CPPROF__NO_FOLDER, tid, &task) &&
                       task.state != 'R'
                   ? CPPROF_VM_ASLEEP_LIGHTLY
                   : CPPROF_VM_AWAKE;
    if (cpprof__task_call(CPPROF__NO_FOLDER, tid, &call) != CPPROF__TASK_SLEEPS)
        return CPPROF_VM_AWAKE;
    return call.number >= 0 && cpprof__blocked_thread_ends_early(&call)
               ? CPPROF_VM_ASLEEP_LIGHTLY
               : CPPROF_VM_ASLEEP;
}

/* poll and the like check for signals before they check their timeout. */
static bool
is_waking(int32_t tid, uint64_t before, uint64_t slept)
{
    return slept && before - slept < GRACE_NS &&
           cpprof__now_ns(CPPROF__THREAD_CPU_CLOCK(tid)) == before;
}

enum cpprof_vm_sleep
cpprof_vm_read_sleep(int32_t tid, uint64_t *cpu_ns)
{
    int saved = errno;
    uint64_t before = cpprof__now_ns(CPPROF__THREAD_CPU_CLOCK(tid)), none = 0;
    enum cpprof_vm_sleep sleep = look(tid);

    if (!cpu_ns)
        cpu_ns = &none;
    if (sleep == CPPROF_VM_ASLEEP_LIGHTLY)
        *cpu_ns = before;
    else if (sleep == CPPROF_VM_AWAKE && is_waking(tid, before, *cpu_ns))
        sleep = CPPROF_VM_ASLEEP_LIGHTLY;
    errno = saved;
    return sleep;
}

/* ---- threads that serve profiles -------------------------------------- */

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
