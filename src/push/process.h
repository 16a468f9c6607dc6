/* SPDX-License-Identifier: MIT */
/* What pushing has to do at start, fork and end of the process. */
#ifndef PUSH_PROCESS_H
#define PUSH_PROCESS_H

/* Push if CPPROF says so. Safety: ONCE. */
void
cpprof__push_begin(void);

/* Send what is left, for two seconds at most. The caller takes no lock and
 * allocates nothing. Safety: MT. */
void
cpprof__push_end(void);

/* In a forked child, which has no threads: push again if CPPROF says so. Two
 * calls: the second one when the allocator and the captures work again. */
void
cpprof__push_in_child(void);
void
cpprof__push_begin_child(void);

/* Have its threads see that they are to pause
 * (collect/runtime/own_threads.h). */
void
cpprof__push_wake_up(void);

#endif
