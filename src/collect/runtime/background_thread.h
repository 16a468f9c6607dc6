/* SPDX-License-Identifier: MIT */
/*
 * A thread of ours beside the program, which does something now and then; or
 * one at its end, which does what takes long when the caller of _exit() may be
 * in a handler and hold any lock. All signals stay blocked in it, and what it
 * allocates is in no profile.
 */
#ifndef COLLECT_BACKGROUND_THREAD_H
#define COLLECT_BACKGROUND_THREAD_H

#include <stdbool.h>

struct cpprof__background_thread_plan {
    bool (*tick)(void); /* false: the thread ends; NULL: nothing to do */
    void (*last)(void); /* at the end, when asked; or NULL */
};

/* One at a time. 0 or an errno. */
int
cpprof__background_thread_start(
    const struct cpprof__background_thread_plan *plan);

/* Have .last done, and wait for it at most that long. False: there is no
 * keeper, or it was not done in time. */
bool
cpprof__background_thread_stop(unsigned seconds);

/* In a forked child: the thread is not here. */
void
cpprof__background_thread_forget(void);

#endif
