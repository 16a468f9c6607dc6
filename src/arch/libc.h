/* SPDX-License-Identifier: MIT */
/*
 * What differs between libcs, glibc and musl. In a build for glibc all of this
 * is nothing, or a number that the compiler knows.
 *
 * Signal 33 is the signal of samples (collect/threads/action.h) in both: libc's
 * calls neither block it nor wait for it nor set its action, it is in no full
 * set of signals, and libc's handler passes over one that libc has not sent.
 * glibc changes credentials by it, musl cancels threads.
 *
 * Source: glibc, internal-signals.h; musl, pthread_cancel and sigaction.
 */
#ifndef ARCH_LIBC_H
#define ARCH_LIBC_H

#include <features.h>

#ifdef __GLIBC__

#include <sys/syscall.h>
#include <unistd.h>

/* Its functions have call-frame information. */
#define CPPROF__LIBC_HAS_ROWS 1

/* It is known what its locks look like, and who holds one. */
#define CPPROF__LIBC_LOCKS_ARE_KNOWN 1

/* On functions that run when a thread ends. */
#define CPPROF__LIBC_CALLS_AT_END

/* syscall(), also on a thread that has no storage of libc's; of no pointers. */
#define CPPROF__BARE_SYSCALL(...) syscall(__VA_ARGS__)

/* Run on a new thread that ends with this. libc's handler is there by then: it
 * comes with the first thread that is made. */
static inline void
cpprof__libc_installs_handler(void *unused)
{
    (void)unused;
}

#else

#include "arch/regs.h"

#include <pthread.h>

#define CPPROF__LIBC_HAS_ROWS        0
#define CPPROF__LIBC_LOCKS_ARE_KNOWN 0

/* Where a thread was cancelled that may be at any time, musl 1.2.3 comes to
 * these with a stack that is not aligned. */
#define CPPROF__LIBC_CALLS_AT_END    CPPROF__ALIGNS_STACK

/* musl's may be built to look in that storage for what protects its stack, and
 * Debian's is. */
#define CPPROF__BARE_SYSCALL(...)                                              \
    cpprof__bare_syscall((const long[7]){__VA_ARGS__})

static inline long
cpprof__bare_syscall(const long w[7])
{
    return cpprof__syscall(w[0], w[1], w[2], w[3], w[4], w[5], w[6]);
}

/* libc's handler comes with the first call of pthread_cancel(), and never
 * again. The thread that it is about cannot be cancelled, so nothing is sent.
 */
static inline void
cpprof__libc_installs_handler(void *unused)
{
    (void)unused;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cancel(pthread_self());
}

#endif

#endif
