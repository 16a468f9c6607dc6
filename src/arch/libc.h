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
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a variable of the library is for each thread: below the thread pointer,
 * or in storage that a table of the thread leads to. */
struct cpprof__libc_place {
    uintptr_t distance;
    uintptr_t module; /* 0: from the thread pointer */
};

#if defined __GLIBC__ || !defined __x86_64__

static inline struct cpprof__libc_place
cpprof__libc_place(uintptr_t variable, uintptr_t pointer)
{
    return (struct cpprof__libc_place){variable - pointer, 0};
}

/* Its address; 0: there is none. may_read asks before memory is read that may
 * not be there; NULL: it is. */
static inline uintptr_t
cpprof__libc_place_at(const struct cpprof__libc_place *place, uintptr_t pointer,
                      bool (*may_read)(uintptr_t))
{
    (void)may_read;
    return pointer + place->distance;
}

#else

/* musl: a thread's descriptor is at its thread pointer, and the second word of
 * it leads to the table: how many modules there are, then the storage of each.
 * Source: musl, pthread_impl.h and __tls_get_addr(). */
static inline uintptr_t
cpprof__libc_word(uintptr_t at, bool (*may_read)(uintptr_t))
{
    return at % sizeof at == 0 && (!may_read || may_read(at))
               ? *(volatile uintptr_t *)at
               : 0;
}

static inline uintptr_t
cpprof__libc_place_at(const struct cpprof__libc_place *place, uintptr_t pointer,
                      bool (*may_read)(uintptr_t))
{
    uintptr_t table = cpprof__libc_word(pointer + sizeof pointer, may_read);
    uintptr_t n = table ? cpprof__libc_word(table, may_read) : 0;
    uintptr_t storage =
        n >= place->module
            ? cpprof__libc_word(table + place->module * sizeof table, may_read)
            : 0;

    return place->module && storage ? storage + place->distance : 0;
}

/* The variable is in the nearest storage below it. */
static inline struct cpprof__libc_place
cpprof__libc_place(uintptr_t variable, uintptr_t pointer)
{
    struct cpprof__libc_place place = {0, 0}, tried = {0, 0};
    uintptr_t table = ((uintptr_t *)pointer)[1], n = *(uintptr_t *)table;
    uintptr_t storage, best = 0;

    for (tried.module = 1; tried.module <= n; tried.module++) {
        storage = cpprof__libc_place_at(&tried, pointer, NULL);
        if (storage > best && storage <= variable) {
            best = storage;
            place.module = tried.module;
            place.distance = variable - storage;
        }
    }
    return place;
}

#endif

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
