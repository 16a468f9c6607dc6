/* SPDX-License-Identifier: MIT */
/*
 * Memory that cpprof allocates for itself must not appear in the program's heap
 * profile. This folder does not know the heap profiler, which only one of the
 * libraries contains. That library sets a function here, which exempts the
 * calling thread (1) or ends that (-1).
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
