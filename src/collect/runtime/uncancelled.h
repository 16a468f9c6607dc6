/* SPDX-License-Identifier: MIT */
/*
 * A thread of the program that is to be cancelled dies in the next call that
 * is a point of cancellation, and open(), read() and close() are. In our code
 * it would die with our locks, so: at the top of a function,
 *
 *     CPPROF__UNCANCELLED;
 *
 * puts that off until it returns. A function that may run between vfork() and
 * exec() has to return before: the parent's thread has the same state.
 */
#ifndef COLLECT_UNCANCELLED_H
#define COLLECT_UNCANCELLED_H

#include <pthread.h>

static inline int
cpprof__cancel_off(void)
{
    int before;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void
cpprof__cancel_as_before(const int *before)
{
    pthread_setcancelstate(*before, NULL);
}

#define CPPROF__UNCANCELLED                                                    \
    int uncancelled_                                                           \
        __attribute__((cleanup(cpprof__cancel_as_before), unused)) =           \
            cpprof__cancel_off()

#endif
