/* SPDX-License-Identifier: MIT */
/*
 * Memory for tables of a fixed size: address space at the first profile that
 * needs them, and memory page by page as they are touched. A process in which
 * nothing is profiled has none of it.
 *
 * Safety: AS, lock-free; also in a child made by fork at any moment.
 */
#ifndef COLLECT_SIGNAL_RESERVE_H
#define COLLECT_SIGNAL_RESERVE_H

#include "arch/atomic.h"
#include "arch/regs.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* n bytes of zeros; NULL: there is no room. Without huge pages: a few entries
 * here and there would take megabytes. */
static inline void *
cpprof__reserve(size_t n)
{
    long p =
        cpprof__syscall(SYS_mmap, 0, (long)n, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p < 0 && p > -4096)
        return NULL;
    cpprof__syscall(SYS_madvise, p, (long)n, MADV_NOHUGEPAGE, 0, 0, 0);
    return (void *)p;
}

/* The same, once: who finds a pointer there uses that. */
static inline void *
cpprof__reserve_once(void **place, size_t n)
{
    void *there = load_acquire(place), *p;

    if (there)
        return there;
    p = cpprof__reserve(n);
    if (!p || cas_acq_rel(place, &there, p))
        return p;
    cpprof__syscall(SYS_munmap, (long)p, (long)n, 0, 0, 0, 0);
    return there;
}

#endif
