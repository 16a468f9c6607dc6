/* SPDX-License-Identifier: MIT */
/*
 * The keeper, `cpprof-keeper`: a thread of ours that holds the program's table
 * of descriptors, while other threads of ours have tables of their own, and
 * does what is asked of it at the end of the process. Without it that table
 * would be gone when the program's last thread ends, and the program's exit
 * handlers, which then run on a thread of ours, would find no descriptors.
 */
#ifndef COLLECT_KEEPER_H
#define COLLECT_KEEPER_H

#include <stdbool.h>

struct cpprof__own_thread;

/* Before a thread is made that is to have a table of its own; there is a keeper
 * until cpprof__keeper_leave(). False: there is none and none can be made, so
 * that thread is to have the program's table. Safety: MT. */
bool
cpprof__keeper_enter(void);

/* is_alone: the program's threads are gone. Safety: MT. */
void
cpprof__keeper_leave(bool is_alone);

/* Is there a keeper? As long as the caller is counted, true stays true, but
 * for a pause, after which a keeper may not be had again. */
bool
cpprof__keeper_is_there(void);

/* Have the keeper run f, and do not wait; nothing is allocated. False: there is
 * none. Safety: AS. */
bool
cpprof__keeper_run(void (*f)(void));

/* After a pause: the keeper could not be started again. */
bool
cpprof__keeper_is(const struct cpprof__own_thread *t);
void
cpprof__keeper_is_gone(void);

/* In a forked child: none. */
void
cpprof__keeper_in_child(void);

#endif
