/* SPDX-License-Identifier: MIT */
/* What the process does about pushing: begins, forks, ends. */
#ifndef PUSH_PROCESS_H
#define PUSH_PROCESS_H

/* Push if CPPROF says so. Safety: ONCE. */
void
cpprof__push_begin(void);

/* Send what there is, for two seconds at most. It takes no lock and allocates
 * nothing. Safety: MT. */
void
cpprof__push_end(void);

/* A child has no threads; it pushes itself if CPPROF says so. Two calls: the
 * second when the allocator and the captures work again. */
void
cpprof__push_fork_child(void);
void
cpprof__push_begin_child(void);

#endif
