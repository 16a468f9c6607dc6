/* SPDX-License-Identifier: MIT */
/*
 * The disposition of the sampling signal: ours in the kernel, the program's
 * own on paper, so that both believe they have it.
 */
#ifndef COLLECT_ACTION_H
#define COLLECT_ACTION_H

#include <signal.h>
#include <stdbool.h>

/* Install our handler, for good; the program's becomes the one to pass foreign
 * signals on to. 0 or an errno. */
int
cpprof__action_install(void);

/* Is our handler installed in this process, which a vfork child is not? */
bool
cpprof__action_is_ours(void);

/* Is signo the sampling signal? */
bool
cpprof__action_concerns(int signo);

/*
 * sigaction(2) as the program sees it. For every other signal, and before our
 * handler is installed, the real one.
 */
int
cpprof__action_swap(int signo, const struct sigaction *action,
                    struct sigaction *old);

/* A program can change the disposition by ways that are not taken over, such
 * as a bare system call: take the signal back, and what it wanted over. */
void
cpprof__action_check(void);

/*
 * Around an exec, which resets handlers but lets an ignored signal stay
 * ignored: what the program ignores on paper is ignored in the kernel too.
 */
void
cpprof__action_exec_begin(void);
void
cpprof__action_exec_failed(void);

/* In a forked child, which has the parent's handler. */
void
cpprof__action_in_child(void);

#endif
