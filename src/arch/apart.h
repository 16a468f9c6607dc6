/* SPDX-License-Identifier: MIT */
/*
 * Where our mappings lie: apart from those of the program. The kernel puts a
 * mapping into the highest hole that is large enough. That may be one which the
 * program has just made and counts on, since a program with one thread knows
 * who maps what: it unmaps a page to map or move something else there by
 * MAP_FIXED, or asks whether it is mapped. So we ask for addresses far below
 * the stacks and libraries. The kernel takes an address as a wish: where it is
 * taken, or leads nowhere, it chooses itself.
 */
#ifndef ARCH_APART_H
#define ARCH_APART_H

#include "arch/atomic.h"

#include <stddef.h>
#include <stdint.h>

/* Tunable: where blocks and tables begin, and how far down they go, as parts of
 * our own address: an eighth, a quarter of a TB, and one, below 128 TB. Farther
 * down they would part a hole that a program reserves tens of TB in. */
#define CPPROF__APART_BLOCKS 1024u
#define CPPROF__APART_TABLES 512u
#define CPPROF__APART_END    128u

/* In a program that the kernel does not move, and below it, there is no room.
 */
#define CPPROF__APART_LOWEST (UINT64_C(1) << 36)

/*
 * The address to ask for n bytes at; 0: any. *next is 0 at first. What was
 * unmapped is not asked for again soon. Safety: AS.
 */
static inline uintptr_t
cpprof__apart(uintptr_t *next, uintptr_t begin, size_t n)
{
#ifdef __SANITIZE_THREAD__ /* it knows no memory there */
    (void)next, (void)begin, (void)n;
    return 0;
#else
    uintptr_t here = (uintptr_t)next & ~(uintptr_t)0xffff; /* largest pages */
    uintptr_t top = (here - here / begin) & ~(uintptr_t)0xffff;
    uintptr_t end = here - here / CPPROF__APART_END;
    uintptr_t at = load_relaxed(next);

    if (here < CPPROF__APART_LOWEST || n > (top - end) / 2)
        return 0;
    n = (n + 0xffff) & ~(size_t)0xffff;
    if (at < end + n)
        at = top;
    at -= n;
    store_relaxed(next, at);
    return at;
#endif
}

#endif
