/* SPDX-License-Identifier: MIT */
/*
 * Clocks, in nanoseconds. There are two ways to read one:
 *
 *   cpprof__clock_ns()  asks the kernel. It works for the CPU clock of any
 *                       thread.
 *   cpprof__now_ns()    calls the kernel's function in the vdso, which reads
 *                       most clocks without a system call, five times as fast.
 *                       Where that is not known it calls libc's name, and asks
 *                       the kernel where the program forbids what the vdso
 *                       needs.
 *
 * Both return 0 for a clock that does not exist, such as that of a thread that
 * has ended.
 */
#ifndef ARCH_CLOCK_H
#define ARCH_CLOCK_H

#include "arch/libc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Of 64 bits: a minute of them has no room in 32. */
#define CPPROF__NS_PER_S INT64_C(1000000000)

/* The CPU clock of any thread, as clock_gettime takes it. Source: the kernel's
 * include/linux/posix-timers_types.h, CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED. */
#define CPPROF__THREAD_CPU_CLOCK(tid) ((int32_t)(~(uint32_t)(tid) << 3 | 6))

static inline uint64_t
cpprof__ns_of(struct timespec t)
{
    return (uint64_t)t.tv_sec * CPPROF__NS_PER_S + (uint64_t)t.tv_nsec;
}

static inline struct timespec
cpprof__timespec_of(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / CPPROF__NS_PER_S),
                             (long)(ns % CPPROF__NS_PER_S)};
}

/* Safety: AS. */
static inline uint64_t
cpprof__clock_ns(clockid_t clock)
{
    struct timespec t = {0, 0};

    CPPROF__BARE_SYSCALL(SYS_clock_gettime, clock, (long)&t);
    return cpprof__ns_of(t);
}

/* Sleep, or less where a signal comes. libc's nanosleep() is a point of
 * cancellation; this is none. Safety: AS. */
static inline void
cpprof__sleep_ns(uint64_t ns)
{
    const struct timespec t = cpprof__timespec_of(ns);

    syscall(SYS_nanosleep, &t, NULL);
}

/* Set by the first step of a library that is loaded into programs. In the
 * plug-ins and the command, which have their own, it stays NULL. (One variable
 * of all files that are linked together, wherever that is: `common`.) */
int (*cpprof__vdso_clock)(clockid_t clock, struct timespec *t)
    __attribute__((common, visibility("hidden")));

/* A thread of the program has asked that reading the processor's counter ends
 * it: it, and those that it makes, which may be ours, must not read it. */
bool cpprof__counter_is_forbidden __attribute__((common, visibility("hidden")));

static inline int
cpprof__kernels_clock(clockid_t clock, struct timespec *t)
{
    return (int)CPPROF__BARE_SYSCALL(SYS_clock_gettime, clock, (long)t);
}

/* Safety: MT. */
static inline uint64_t
cpprof__now_ns(clockid_t clock)
{
    struct timespec t = {0, 0};

    if (cpprof__vdso_clock)
        cpprof__vdso_clock(clock, &t);
    else
        clock_gettime(clock, &t);
    return cpprof__ns_of(t);
}

#endif
