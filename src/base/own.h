/* SPDX-License-Identifier: MIT */
/*
 * What cpprof allocates for itself is not the program's. Code here does not
 * know the heap profiler, which is in one of the libraries only: who has it
 * sets a function that takes allocations of the calling thread out of the
 * profile (1) and back in (-1).
 */
#ifndef BASE_OWN_H
#define BASE_OWN_H

extern void (*cpprof__own_memory)(int by);

static inline void
cpprof__own(int by)
{
    void (*f)(int) = __atomic_load_n(&cpprof__own_memory, __ATOMIC_RELAXED);

    if (f)
        f(by);
}

#endif
