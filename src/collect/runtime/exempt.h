/* SPDX-License-Identifier: MIT */
/*
 * What cpprof allocates for itself is not the program's: at the top of a
 * function,
 *
 *     CPPROF__EXEMPT;
 *
 * keeps the thread's allocations out of the heap profile until it returns.
 * Memory of the program that is freed meanwhile still leaves the profile.
 *
 * When the function does not return, because a handler of the program jumped
 * out of it, or an exception of a callback went through it, that is found out
 * later, by the address of its frame (signal/heap/exempt.c). Code that nothing
 * can jump out of, or that has no end, may do `cpprof__hook_self.exempt++`.
 */
#ifndef COLLECT_EXEMPT_H
#define COLLECT_EXEMPT_H

#include "collect/signal/heap/heap.h"

#define CPPROF__EXEMPT                                                         \
    struct cpprof__exempt exempt_                                              \
        __attribute__((cleanup(cpprof__exempt_end), unused)) =                 \
            cpprof__exempt_begin((uintptr_t)__builtin_frame_address(0))

#endif
