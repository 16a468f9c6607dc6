/* SPDX-License-Identifier: MIT */
#include "collect/signal/tables/thread.h"

#include "arch/atomic.h"
#include "arch/place.h"
#include "collect/signal/tables/cost.h"

__thread struct cpprof__thread_self cpprof__self;
struct cpprof__thread *cpprof__thread_chunks[CPPROF__MAX_CHUNKS] CPPROF__LARGE;
int32_t cpprof__thread_tids[CPPROF__MAX_THREADS] CPPROF__LARGE;
uint32_t cpprof__n_thread_slots;
struct cpprof__cost cpprof__cost;

struct cpprof__thread *
cpprof__thread_at(uint32_t index)
{
    struct cpprof__thread *chunk;

    if (index >= CPPROF__MAX_THREADS)
        return NULL;
    chunk =
        load_acquire(&cpprof__thread_chunks[index / CPPROF__THREADS_PER_CHUNK]);
    return chunk ? &chunk[index % CPPROF__THREADS_PER_CHUNK] : NULL;
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
