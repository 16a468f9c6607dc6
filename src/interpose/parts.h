/* SPDX-License-Identifier: MIT */
/*
 * The parts of the library that have to do something when the process forks,
 * unloads code or ends; parts.c has the table, in order, and tells the rules.
 */
#ifndef INTERPOSE_PARTS_H
#define INTERPOSE_PARTS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Each function may be NULL. */
struct cpprof__part {
    /* In a child made by fork: forget what was the parent's. */
    void (*in_child)(void);
    /* The same, when the program's own handlers have run: begin anew. */
    void (*begin_child)(void);

    /* Around dlclose(). */
    void (*before_unload)(void);
    void (*after_unload)(void);

    /* The process ends. Safety: AS. */
    void (*end)(void);
    /* Is there anything to write before? in_haste: by _exit(); Safety: AS. */
    bool (*has_to_write)(bool in_haste);
    /* Write it by that moment of CLOCK_MONOTONIC. On a thread of ours. */
    void (*write)(uint64_t until_ns);
};

enum { CPPROF__N_PARTS = 23 };

#pragma GCC visibility push(hidden)
extern const struct cpprof__part cpprof__parts[CPPROF__N_PARTS];
#pragma GCC visibility pop

/* fork.c: our handlers are registered, by the library's first step. */
void
cpprof__fork_begin(void);

/* exit.c: the library's destructor, and for at_quick_exit(). */
void
cpprof__at_exit(void);
void
cpprof__at_quick_exit(void);

/* Is the caller a handler that interrupted the creation of a thread? Safety:
 * AS.
 */
bool
cpprof__in_thread_creation(void);

/* signals.c: is the caller's thread killed for system calls of ours? Safety:
 * AS. */
bool
cpprof__in_strict_seccomp(void);

/*
 * credentials.c: no thread of ours is there from begin to end, and all signals
 * are blocked in the caller. The end returns `result`, and leaves errno.
 */
struct cpprof__alone {
    bool are_paused; /* there were some */
    bool are_left;   /* there are some still, and nobody can wait for them */
    sigset_t mask;   /* of the caller */
};

struct cpprof__alone
cpprof__alone_begin(void);
int
cpprof__alone_end(const struct cpprof__alone *alone, int result);

/* The same as the begin for what has failed because there are too many threads,
 * but signals come. False: there was none of ours lately, and there is no
 * end. */
bool
cpprof__alone_again(struct cpprof__alone *alone);

/* fork.c: is it one that interrupted libc's fork? Safety: AS. */
bool
cpprof__in_fork(void);

/* May this thread read the processor's counter? What started the program may
 * have forbidden it. */
void
cpprof__look_for_counter(void);

#endif
