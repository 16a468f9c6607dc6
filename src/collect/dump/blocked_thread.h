/* SPDX-License-Identifier: MIT */
/*
 * A thread that sleeps, looked at from outside.
 *
 * nanosleep, poll, epoll_wait and some others return with EINTR after a handler
 * has run, whatever SA_RESTART says (signal(7)). So who sleeps is never sent a
 * signal; its stack is read: /proc/self/task/TID/syscall tells the call, sp and
 * pc, and the unwinder goes from there, by memory that the kernel copies. The
 * thread may wake up meanwhile. What was read is true if its CPU clock stood
 * still all the while: then it has not run.
 *
 * A walk that begins without most registers does not always reach the root.
 * And where the kernel does not let us read (without /proc, after a change of
 * credentials, under seccomp), the stack is not known at all, and that is said.
 */
#ifndef COLLECT_BLOCKED_THREAD_H
#define COLLECT_BLOCKED_THREAD_H

#include "collect/signal/sample/dump.h"
#include "collect/threads/tasks.h"
#include "collect/threads/thread_creation.h"

struct cpprof__blocked_thread {
    struct cpprof__dump_answer answer;
    struct cpprof__dump_wait wait;
    uint64_t cpu_ns; /* its clock */
    bool is_stuck;   /* it cannot be interrupted, or is stopped */
};

/* The variables of a thread, or NULL if they are not known. creation may be
 * NULL. */
const struct cpprof__thread_self *
cpprof__blocked_thread_self(int32_t tid,
                            const struct cpprof__creation_info *creation);

struct cpprof__blocked_thread_who {
    int folder; /* cpprof__tasks_folder() */
    int32_t tid;
    const struct cpprof__thread_self *self; /* NULL: its labels and waits cannot
                                             * be told */
};

enum cpprof__blocked_thread_result {
    CPPROF__BLOCKED_NOT, /* it runs, or is ready to */
    CPPROF__BLOCKED_READ,
    CPPROF__BLOCKED_UNREADABLE, /* or it is gone */
};

/* Would a signal end this sleep? signal(7), "Interruption of system calls and
 * library functions by signal handlers". AS. */
bool
cpprof__blocked_thread_ends_early(const struct cpprof__task_call *call);

/* Would another thread read stacks that this one cannot? One of ours with a
 * table of descriptors of its own does so where the kernel refuses to copy.
 * Not in handlers. */
bool
cpprof__blocked_threads_want_table(void);

/* Not in handlers. */
enum cpprof__blocked_thread_result
cpprof__blocked_thread_read(enum cpprof__dump_user user,
                            const struct cpprof__blocked_thread_who *who,
                            struct cpprof__blocked_thread *blocked);

/* In the first thread, before there are others; and in a child by fork. */
void
cpprof__blocked_thread_note_main(void);
void
cpprof__blocked_thread_in_child(void);

#endif
