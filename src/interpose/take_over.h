/* SPDX-License-Identifier: MIT */
/*
 * How a name of libc is taken over. All names of the table in runtime/real.h
 * are taken over in this one way.
 *
 * The exported function is a jump through a pointer, to the next definition
 * while the group of the name is off, or to NAME_on. The pointers are set by
 * the constructor, and whenever a group is switched; before it they lead to
 * NAME_first, which sets all of them. So a program in which nothing is profiled
 * pays for a jump and runs no code of ours.
 *
 * What NAME_on calls is cpprof__real(NAME).
 */
#ifndef INTERPOSE_TAKE_OVER_H
#define INTERPOSE_TAKE_OVER_H

#include "arch/atomic.h"
#include "collect/runtime/real.h"
#include <cpprof/status.h>

#include <stdbool.h>
#include <stddef.h>

enum cpprof__group {
    CPPROF__ALLOCATE, /* the rate of the heap profile is not 0 */
    CPPROF__RELEASE,  /* nor was it always */
    CPPROF__NEW,      /* as the first, for C++ */
    CPPROF__DELETE,   /* as the second */
    CPPROF__MAPS,     /* the heap "mmap" is followed */
    CPPROF__WAITS,    /* block or mutex is on */
    CPPROF__PROCESS,  /* the library is used */
    CPPROF__UNLOAD,   /* the same, or operators were found late */
    CPPROF__N_GROUPS
};

struct cpprof__hook {
    void *entry;     /* where the exported function jumps to */
    void *first;     /* the same as long as nobody is known who defines it */
    void *on;        /* what the name does while its group is on */
    void *otherwise; /* the same when nobody else defines it; NULL: that cannot
                      * be carried out */
};

#pragma GCC visibility push(hidden)
#define CPPROF__HOOK_OF(group, name) extern struct cpprof__hook name##_hook;
CPPROF__NAMES(CPPROF__HOOK_OF)
#undef CPPROF__HOOK_OF
#pragma GCC visibility pop

/* Find all names, and set all pointers: by the constructor, and by who calls
 * one of the names earlier. Safety: AS. */
void
cpprof__take_over(void);

/* The groups, one by one. Whoever else switches it at the same time, the
 * pointers come to what was said last. Safety: AS. */
void
cpprof__switch_group(enum cpprof__group group, bool on);

/* Code went: the operators of C++ may have been in it. Safety: MT. */
void
cpprof__find_operators_again(void);

/* Set all pointers, and return where that name leads now. */
void *
cpprof__first_call(enum cpprof__name name);

#define ENTRY(name) ((__typeof__(name) *)load_relaxed(&name##_hook.entry))

/* A name whose exported function, and NAME_first, are written out. */
#define HOOK(name, otherwise)                                                  \
    static __typeof__(name) name##_on, name##_first;                           \
    struct cpprof__hook name##_hook = {                                        \
        (void *)name##_first, (void *)name##_first, (void *)name##_on,         \
        (void *)(otherwise)};

#define FIRST(name)                                                            \
    ((__typeof__(name) *)cpprof__first_call(CPPROF__NAME_##name))

#define TAKE_OVER_OR(name, result, parameters, arguments, otherwise)           \
    HOOK(name, otherwise)                                                      \
                                                                               \
    CPPROF_API result name parameters                                          \
    {                                                                          \
        return ENTRY(name) arguments;                                          \
    }                                                                          \
                                                                               \
    static result name##_first parameters                                      \
    {                                                                          \
        return FIRST(name) arguments;                                          \
    }

#define TAKE_OVER(name, result, parameters, arguments)                         \
    TAKE_OVER_OR(name, result, parameters, arguments, NULL)

#endif
