/* SPDX-License-Identifier: MIT */
/* Has the running thread the thread-local storage of libc? */
#ifndef COLLECT_SIGNAL_THREAD_POINTER_H
#define COLLECT_SIGNAL_THREAD_POINTER_H

#include <stdbool.h>

/* Before a handler or a hook asks, on a thread of libc's; with AT_HWCAP2 of the
 * auxiliary vector. */
void
cpprof__thread_pointer_learn(unsigned long hwcap2);

/* False for a thread of a bare clone() that has no thread pointer, or one of
 * its own: it has no errno, and no thread-local variable may be touched. It
 * touches none itself. Safety: AS. */
bool
cpprof__thread_pointer_is_libcs(void);

#endif
