/* SPDX-License-Identifier: MIT */
/*
 * How a name of libc is taken over. All names of the table in runtime/real.h
 * are taken over in this one way.
 *
 * The exported function is a jump through a pointer, to the next definition
 * while the group of the name is off, or to NAME_on. The constructor sets all
 * pointers, and whoever switches a group sets those of the group; a call that
 * comes before does what the constructor does. So a program in which nothing is
 * profiled pays for a jump, and runs no code of ours.
 *
 * What NAME_on calls is cpprof__real(NAME).
 */
#ifndef INTERPOSE_TAKE_OVER_H
#define INTERPOSE_TAKE_OVER_H

#include "arch/atomic.h"
#include "arch/place.h"
#include "collect/runtime/real.h"
#include "collect/signal/sample/thread_pointer.h"
#include <cpprof/status.h>

#include <stdbool.h>
#include <stddef.h>

enum cpprof__group {
    CPPROF__ALLOCATE, /* the rate of the heap profile is not 0 */
    CPPROF__RELEASE,  /* nor was it always */
    CPPROF__MAPS,     /* the heap "mmap" is followed */
    CPPROF__WAITS,    /* block or mutex is on */
    CPPROF__PROCESS,  /* the library is used */
    CPPROF__N_GROUPS
};

#pragma GCC visibility push(hidden)
/* Where the exported functions jump to; NULL: ask cpprof__first_call(). */
extern void *cpprof__entries[CPPROF__N_NAMES];

/* NAME_hook(true) is what the name does while its group is on, and
 * NAME_hook(false) is that when nobody else defines it; NULL: that cannot be
 * carried out. They are functions because a table of addresses would have to be
 * relocated at each start. */
#define CPPROF__HOOK_OF(group, name) void *name##_hook(bool on);
CPPROF__NAMES(CPPROF__HOOK_OF)
#undef CPPROF__HOOK_OF
#pragma GCC visibility pop

/* Find all names, and set all pointers. Safety: AS. */
void
cpprof__take_over(void);

/* The groups, one by one. Whoever else switches it at the same time, the
 * pointers come to what was said last. Safety: AS. */
void
cpprof__switch_group(enum cpprof__group group, bool on);

/* From now on this is the next definition of the name. It may be called before
 * this returns. */
void
cpprof__put_under(enum cpprof__name name, void *function);

/* Where the pointer of that name leads, now that it is to lead somewhere. */
__attribute__((cold)) void *
cpprof__first_call(enum cpprof__name name);

/* No function: an inline one at the address of the exported one would be a
 * frame of its own in stacks that end there. */
#define ENTRY(name)                                                            \
    ({                                                                         \
        void *entry_ = load_relaxed(&cpprof__entries[CPPROF__NAME_##name]);    \
                                                                               \
        if (__builtin_expect(entry_ == NULL, 0))                               \
            entry_ = cpprof__first_call(CPPROF__NAME_##name);                  \
        (__typeof__(name) *)entry_;                                            \
    })

/* A name whose exported function is written out. */
#define HOOK(name, otherwise)                                                  \
    static __typeof__(name) name##_on;                                         \
                                                                               \
    CPPROF__FIRST_STEP void *name##_hook(bool on)                              \
    {                                                                          \
        return on ? (void *)name##_on : (void *)(otherwise);                   \
    }

#define TAKE_OVER_OR(name, result, parameters, arguments, otherwise)           \
    HOOK(name, otherwise)                                                      \
                                                                               \
    CPPROF_API result name parameters                                          \
    {                                                                          \
        return ENTRY(name) arguments;                                          \
    }

#define TAKE_OVER(name, result, parameters, arguments)                         \
    TAKE_OVER_OR(name, result, parameters, arguments, NULL)

/* At the top of NAME_on, where libc's own is a system call and no more: a child
 * of clone(CLONE_VM | CLONE_SETTLS) may call it, which has the process's memory
 * and a thread pointer that leads to nothing of libc's, nor of ours. */
#define NEEDS_STORAGE(name, arguments)                                         \
    do {                                                                       \
        if (!cpprof__thread_pointer_is_libcs())                                \
            return cpprof__real(name) arguments;                               \
    } while (0)

#endif
