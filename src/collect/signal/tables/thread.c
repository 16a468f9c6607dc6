/* SPDX-License-Identifier: MIT */
#include "collect/signal/tables/thread.h"

#include "arch/atomic.h"
#include "arch/place.h"
#include "collect/signal/tables/cost.h"

__thread struct cpprof__thread_self cpprof__self;
struct cpprof__thread *cpprof__thread_chunks[CPPROF__MAX_CHUNKS] CPPROF__LARGE;
int32_t cpprof__thread_tids[CPPROF__MAX_THREADS] CPPROF__LARGE;
uint32_t cpprof__n_thread_slots CPPROF__AT_START;
struct cpprof__cost cpprof__cost;

CPPROF__FIRST_STEP struct cpprof__thread *
cpprof__thread_at(uint32_t index)
{
    if (index >= load_acquire(&cpprof__n_thread_slots))
        return NULL;
    return &cpprof__thread_chunks[index / CPPROF__THREADS_PER_CHUNK]
                                 [index % CPPROF__THREADS_PER_CHUNK];
}

struct cpprof__thread *
cpprof__thread_of_tid(int32_t tid)
{
    uint32_t i, n = load_acquire(&cpprof__n_thread_slots);

    for (i = 0; i < n; i++)
        if (load_acquire(&cpprof__thread_tids[i]) == tid)
            return cpprof__thread_at(i);
    return NULL;
}
