/* SPDX-License-Identifier: MIT */
/*
 * Begins the heap profiler, and switches what it takes over with its rate.
 *
 * Invariant: whatever frees blocks looks for samples from before the first one
 * can exist on, and never stops to.
 */
#include "interpose/heap.h"

#include "arch/place.h"
#include "collect/heap/heap_owner.h"
#include "collect/runtime/next.h"
#include "collect/signal/heap/heap.h"
#include "collect/store/tables.h"
#include "collect/threads/stacks.h"
#include "interpose/take_over.h"

#include <link.h>
#include <stdlib.h>

#if CPPROF__HAS_ALLOCATOR

/* If another malloc stands in front of ours, the calls that still reach us are
 * not sampled, because their blocks may be freed without our knowledge. */
static bool
another_is_in_front(void)
{
    const struct link_map *module;
    void *first = cpprof__first_symbol("malloc", &module);

    return first && (uintptr_t)first != cpprof__heap_our_malloc;
}

static void
find_mallocs(void)
{
    cpprof__heap_our_malloc = cpprof__our_malloc();
    cpprof__find_allocator();
}

#else

static bool
another_is_in_front(void)
{
    return true;
}

static void
find_mallocs(void)
{
}

#endif

static bool is_begun CPPROF__AT_START;

/* Switch the names to the present rate, whoever else changes it meanwhile.
 * Functions that free look for samples before the first one can exist and as
 * long as any may exist. */
CPPROF__FIRST_STEP static void
follow_rate(void)
{
    bool counts;

    do {
        counts = cpprof__heap_set_rate(-1) != 0;
        if (counts) {
            cpprof__use();
            cpprof__switch_group(CPPROF__RELEASE, true);
        }
        cpprof__operators_follow(counts, is_begun);
        cpprof__switch_group(CPPROF__ALLOCATE, counts);
    } while (counts != (cpprof__heap_set_rate(-1) != 0));
}

CPPROF__FIRST_STEP void
cpprof__heap_start(void)
{
    find_mallocs();
    cpprof__stack_of_main();
    cpprof__heap.tree = &cpprof__tables.tree;
    if (cpprof__heap_set_rate(-1))
        cpprof__heap_reserve();
    cpprof__maps_start();
    if (!another_is_in_front()) {
        cpprof__heap_rate_changed = follow_rate;
        follow_rate();
    }
    is_begun = true;
}

void
cpprof__heap_patch(void)
{
    cpprof__heap_rate_changed = follow_rate;
    follow_rate();
}

bool
cpprof__heap_put_back(void)
{
    cpprof__heap_rate_changed = NULL;
    cpprof__switch_group(CPPROF__ALLOCATE, false);
    cpprof__switch_group(CPPROF__RELEASE, false);
    return cpprof__operators_put_back();
}
