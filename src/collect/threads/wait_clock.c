/* SPDX-License-Identifier: MIT */
#include "collect/threads/wait_clock.h"

#include "arch/clock.h"
#include "collect/runtime/own_threads.h"
#include "collect/runtime/proc.h"
#include "collect/threads/tasks.h"

#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UNKNOWN UINT64_MAX

/* Tunable: a sleep, so that the scheduler begins to count anew. */
#define NAP_NS 1000

#define WORD_BITS (8 * sizeof(unsigned long))

struct visit {
    uint32_t processor;
    uint64_t behind_ns;
};

/* A thread of the program stays where it is. */
static void
visit(void *arg)
{
    struct visit *v = arg;
    const int32_t tid = (int32_t)syscall(SYS_gettid);
    unsigned long before[CPPROF__PROCESSORS / WORD_BITS] = {0};
    unsigned long there[CPPROF__PROCESSORS / WORD_BITS] = {0};
    uint64_t now, ran;

    there[v->processor / WORD_BITS] = 1UL << v->processor % WORD_BITS;
    if (!cpprof__is_own_thread(tid) || cpprof__proc_has_own_filter() ||
        syscall(SYS_sched_getaffinity, 0, sizeof before, before) < 0 ||
        syscall(SYS_sched_setaffinity, 0, sizeof there, there))
        return;
    cpprof__sleep_ns(NAP_NS);
    now = cpprof__now_ns(CLOCK_MONOTONIC);
    ran = cpprof__task_last_ran_ns(CPPROF__NO_FOLDER, tid);
    syscall(SYS_sched_setaffinity, 0, sizeof before, before);
    if (ran)
        v->behind_ns = now - ran;
}

uint64_t
cpprof__wait_began(struct cpprof__wait_clock *clock, int folder, int32_t tid)
{
    struct visit v = {0, UNKNOWN};
    uint64_t *behind, ran = cpprof__task_last_ran_ns(folder, tid), now;
    struct cpprof__task task;

    if (!ran || !cpprof__task_look(folder, tid, &task) ||
        task.processor >= CPPROF__PROCESSORS)
        return 0;
    behind = &clock->behind_ns[task.processor];
    if (!*behind) {
        v.processor = task.processor;
        cpprof__own_thread_run(visit, &v);
        *behind = v.behind_ns;
    }
    now = cpprof__now_ns(CLOCK_MONOTONIC);
    if (*behind == UNKNOWN)
        return 0;
    return ran + *behind < now ? ran + *behind : now;
}
