/* SPDX-License-Identifier: MIT */
/*
 * The sampling signal and its handler.
 *
 * It is signal 33, by which libc changes credentials in all threads (SIGSETXID
 * of glibc), and no signal of the program's: libc's calls neither block it nor
 * wait for it nor set its action, sigfillset() leaves it out, and so a program
 * sees nothing of it. SIGPROF and the program's masks are left alone, and a
 * thread that blocks all signals, as workers of servers do, is sampled as any
 * other. What is not ours is handed on to libc's handler.
 *
 * It uses the alternate stack of a thread that has one, but in programs that do
 * not bear that (signal/sample/alternate.h).
 */
#ifndef COLLECT_ACTION_H
#define COLLECT_ACTION_H

#include <stdbool.h>

/* Install our handler. 0 or an errno: ENOTSUP where libc has none. */
int
cpprof__action_install(void);

/* What such an errno means. */
const char *
cpprof__action_error(int failed);

/* Put libc's back, if ours is there: nothing that sends the signal is left.
 * libc's passes over one that is still on its way, since no thread sent it. */
void
cpprof__action_remove(void);

/* A program can change it by a bare system call: take the signal back, unless
 * a handler of another stands in front. */
void
cpprof__action_check(void);

#endif
