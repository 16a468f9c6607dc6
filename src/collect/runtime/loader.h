/* SPDX-License-Identifier: MIT */
/*
 * The loader's list of modules, which the unwinder needs only to notice what
 * was unloaded behind our back. The loader's lock is not reset in a forked
 * child: it should not be held by a thread of ours when the program forks, and
 * a child must not ask for it, since another thread of the parent may have held
 * it. So nobody asks while a fork is under way, and a fork waits for who asks
 * already; that takes microseconds, and has a limit. No lock is held meanwhile.
 * Whether a child can have the lock is found out where it must be known.
 */
#ifndef COLLECT_LOADER_H
#define COLLECT_LOADER_H

#include <link.h>
#include <stdbool.h>

/* cpprof__unwind_refresh_modules(); nothing in a child made by fork, and while
 * a fork is under way. */
void
cpprof__loader_refresh(void);

/* The same where stacks need a list of modules, since libc has no
 * _dl_find_object (before 2.35), and nothing elsewhere. What was loaded since
 * ends the stacks of hooks. */
void
cpprof__loader_list(void);

/* dl_iterate_phdr(); false, and nothing is called, where nobody may ask. */
bool
cpprof__loader_visit(int (*each)(struct dl_phdr_info *info, size_t n,
                                 void *arg),
                     void *arg);

/* False in a child made by fork. Then one thread waits for the lock, for ever
 * if it was held when the child was made, and true after that. */
bool
cpprof__loader_may_be_asked(void);
void
cpprof__loader_wait(void);

/* Around a fork, in the parent; and in the child. */
void
cpprof__loader_before_fork(void);
void
cpprof__loader_after_fork(void);
void
cpprof__loader_in_child(void);

#endif
