/* SPDX-License-Identifier: MIT */
/* The calls of <cpprof/profiles.h> about waits. */
#include "collect/signal/waits/waits.h"

#include "collect/signal/heap/heap.h"
#include <cpprof/profiles.h>

#include <stddef.h>

#define AS_COMPILED                                                            \
    __asm__ volatile("") /* keeps the call above from being a tail call */

_Static_assert(sizeof(struct cpprof__wait) <= sizeof(struct cpprof_wait),
               "it fits the caller's");

int64_t
cpprof_block_set_rate(int64_t ns)
{
    return cpprof__waits_set_block_rate(ns);
}

int
cpprof_mutex_set_fraction(int n)
{
    return (int)cpprof__waits_set_mutex_fraction(n);
}

void
cpprof_wait_begin(struct cpprof_wait *wait, const void *lock)
{
    cpprof__wait_begin((struct cpprof__wait *)wait, CPPROF__WAITS_OTHER_LOCK,
                       lock, NULL);
}

CPPROF__HOOK void
cpprof_wait_end(struct cpprof_wait *wait)
{
    cpprof__wait_end((struct cpprof__wait *)wait, CPPROF__WAIT_GOT);
    AS_COMPILED;
}

CPPROF__HOOK void
cpprof_wait_released(const void *lock)
{
    struct cpprof__wait_charge charge;

    if (cpprof__wait_may_charge(lock) && cpprof__wait_release(lock, &charge))
        cpprof__wait_released(lock, charge, NULL);
    AS_COMPILED;
}

CPPROF__HOOK void
cpprof_block_add(int64_t ns, unsigned skip)
{
    if (!cpprof__waits_are_off())
        cpprof__wait_event(ns, NULL, skip);
    AS_COMPILED;
}
