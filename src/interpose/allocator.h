/* SPDX-License-Identifier: MIT */
/*
 * The names of an allocator, taken over (interpose/take_over.h). While the heap
 * is sampled each call is a subtraction or a load, and a jump to the next
 * definition. Only an allocation that is due, or a free of a block that may be
 * sampled, does more.
 *
 * Nothing is counted twice. Of C++'s operators only the allocator's own are
 * counted (interpose/heap.h), since all others call malloc. Calls that an
 * allocator's library makes by these names are part of another call and are not
 * counted. libc does not call itself by these names.
 */
#ifndef INTERPOSE_ALLOCATOR_H
#define INTERPOSE_ALLOCATOR_H

#include "collect/signal/heap/heap.h"
#include "interpose/take_over.h"

#include <stdint.h>

/* Where the library of the allocator lies; 0 bytes: it is libc. */
extern uintptr_t cpprof__allocator_at __attribute__((visibility("hidden")));
extern size_t cpprof__allocator_bytes __attribute__((visibility("hidden")));

/* Does the function that it stands in come from the allocator? */
#define IS_INNER()                                                             \
    __builtin_expect((uintptr_t)__builtin_return_address(0) -                  \
                             cpprof__allocator_at <                            \
                         cpprof__allocator_bytes,                              \
                     0)

/* Take a count back until the outcome of the call is known: it may fail, and
 * operator new may throw. */
static inline void
uncount(size_t n)
{
    struct cpprof__hook_self *self = &cpprof__hook_self;

    self->left = (int64_t)((uint64_t)self->left + n);
}

__attribute__((always_inline)) static inline void
sample(const void *address, size_t n)
{
    uncount(-n);
    cpprof__heap_sample(address, n, 0);
}

/*
 * Define `name`, which returns the address of a block of `bytes` bytes:
 *
 *     name        the symbol
 *     parameters  in parentheses
 *     arguments   the same without types
 *     bytes       of the block, from the arguments
 *     otherwise   what to call when nobody else defines it
 */
#define ALLOCATOR(name, parameters, arguments, bytes, otherwise)               \
    TAKE_OVER_OR(name, void *, parameters, arguments, otherwise)               \
    ALLOCATOR_ON(name, parameters, arguments, bytes, cpprof__real(name))

/* What it does while it is on; next is what it is underneath. */
#define ALLOCATOR_ON(name, parameters, arguments, bytes, next)                 \
    CPPROF__HOOK static void *name##_sampled parameters                        \
    {                                                                          \
        void *address;                                                         \
                                                                               \
        uncount(bytes);                                                        \
        address = next arguments;                                              \
        sample(address, bytes);                                                \
        return address;                                                        \
    }                                                                          \
                                                                               \
    CPPROF__HOOK static void *name##_on parameters                             \
    {                                                                          \
        if (IS_INNER())                                                        \
            return next arguments;                                             \
        if (cpprof__heap_due(bytes))                                           \
            return name##_sampled arguments;                                   \
        return next arguments;                                                 \
    }

/* Define `name`, which frees `address`, one of its parameters: out of the table
 * first, since after the real free the address may be another thread's. */
#define RELEASER(name, parameters, arguments, otherwise)                       \
    TAKE_OVER_OR(name, void, parameters, arguments, otherwise)                 \
    RELEASER_ON(name, parameters, arguments, cpprof__real(name))

#define RELEASER_ON(name, parameters, arguments, next)                         \
    CPPROF__HOOK static void name##_sampled parameters                         \
    {                                                                          \
        cpprof__heap_remove(address, 0, NULL);                                 \
        next arguments;                                                        \
    }                                                                          \
                                                                               \
    static void name##_on parameters                                           \
    {                                                                          \
        if (cpprof__heap_may_be_sampled(address))                              \
            name##_sampled arguments;                                          \
        else                                                                   \
            next arguments;                                                    \
    }

#endif
