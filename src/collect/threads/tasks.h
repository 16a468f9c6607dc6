/* SPDX-License-Identifier: MIT */
/*
 * The threads of this process as the kernel lists them (proc(5),
 * /proc/self/task). Allocates by malloc; for use outside handlers.
 */
#ifndef COLLECT_TASKS_H
#define COLLECT_TASKS_H

#include <cpprof/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the kernel says of a thread. */
struct cpprof__task {
    char comm[17];
    char state;         /* R, S, D, T, t, Z, X, ...; 0: not known */
    uint32_t processor; /* that it last ran on; UINT32_MAX: not known */
};

/*
 * The tids, sorted, without the profiler's own; from malloc. Every thread that
 * lives all the while is in it. The kernel's list skips threads when others end
 * meanwhile, so it is read until nothing new appears.
 *
 * extra: more tids that may be alive, which the caller knows of. NULL: no
 * memory, or no /proc.
 */
int32_t *
cpprof__tasks(const int32_t *extra, size_t n_extra, size_t *n);

/* What to say when there is no list; CPPROF_OK: it can be read. */
enum cpprof_status
cpprof__tasks_check(struct cpprof_error *error);

/*
 * A descriptor of /proc/self/task, which saves the kernel a part of the way to
 * each file; or CPPROF__NO_FOLDER, which works too. The caller closes it, and
 * soon: a program may close descriptors that it does not know.
 */
#define CPPROF__NO_FOLDER (-1)
int
cpprof__tasks_folder(void);

/* False: the thread is gone. */
bool
cpprof__task_look(int folder, int32_t tid, struct cpprof__task *task);

/* A system call in which a thread sleeps. */
struct cpprof__task_call {
    long number; /* < 0: it sleeps, but not in a call, and args are not set */
    uintptr_t args[6];
    uintptr_t sp;
    uintptr_t pc; /* behind the instruction of a call */
};

enum cpprof__task_sleep {
    CPPROF__TASK_SLEEPS,
    CPPROF__TASK_RUNS,       /* or is ready to */
    CPPROF__TASK_UNREADABLE, /* by us, or it is gone */
};

enum cpprof__task_sleep
cpprof__task_call(int folder, int32_t tid, struct cpprof__task_call *call);

/* The kernel function that it sleeps in; "" when that cannot be told. */
void
cpprof__task_wchan(int folder, int32_t tid, char *name, size_t n);

/* When it last ran, in the clock of that processor, in ns; 0: not known. */
uint64_t
cpprof__task_last_ran_ns(int folder, int32_t tid);

#endif
