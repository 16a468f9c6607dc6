/* SPDX-License-Identifier: MIT */
/*
 * The loader's list of modules, asked such that no fork happens meanwhile: the
 * loader's lock is not reset in a forked child. It must not be held by a thread
 * of ours when the program forks, and a child must not ask for it, since
 * another thread of the parent may have held it. (The unwinder needs this only
 * to notice what was unloaded behind our back.)
 */
#ifndef COLLECT_LOADER_H
#define COLLECT_LOADER_H

/* cpprof__unwind_refresh_modules(); nothing in a child made by fork. */
void
cpprof__loader_refresh(void);

/* fork: what happens before, in the parent, in the child. */
void
cpprof__loader_fork_prepare(void);
void
cpprof__loader_fork_parent(void);
void
cpprof__loader_fork_child(void);

#endif
