/* SPDX-License-Identifier: MIT */
/* Atomics with the order in the name. */
#ifndef ARCH_ATOMIC_H
#define ARCH_ATOMIC_H

#define load_relaxed(p)     __atomic_load_n(p, __ATOMIC_RELAXED)
#define load_acquire(p)     __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define store_relaxed(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define add_relaxed(p, v)   __atomic_fetch_add(p, v, __ATOMIC_RELAXED)
#define swap_acq_rel(p, v)  __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL)

/* True when *p was *expected and is now v; *expected is what was found. */
#define cas_acq_rel(p, expected, v)                                            \
    __atomic_compare_exchange_n(p, expected, v, 0, __ATOMIC_ACQ_REL,           \
                                __ATOMIC_ACQUIRE)

#endif
