/* SPDX-License-Identifier: MIT */
/*
 * The lines at the end of a heap profile's text: the memory of the process,
 * under the names that Go's runtime has for it. C's malloc does not count its
 * calls, so these numbers are estimates from the profile.
 *
 * Source: Go runtime/pprof/pprof.go, writeHeapInternal; runtime.MemStats.
 */
#ifndef COLLECT_HEAP_STATS_H
#define COLLECT_HEAP_STATS_H

#include "collect/encode/text_profile.h"
#include "collect/heap/heap_records.h"

struct cpprof__heap_stats {
    uint64_t alloc;       /* bytes in use */
    uint64_t total_alloc; /* ever: an estimate */
    uint64_t sys;         /* got from the kernel */
    uint64_t mallocs;     /* estimates */
    uint64_t frees;
    uint64_t heap_sys;
    uint64_t heap_idle;
    uint64_t heap_inuse;
    uint64_t stack; /* of the main thread */
    uint64_t max_rss;
};

/* is_self: this process's, of libc's malloc and /proc; else only what the
 * records say. */
void
cpprof__heap_stats_take(bool is_self,
                        const struct cpprof__heap_records *records,
                        struct cpprof__heap_stats *stats);

void
cpprof__heap_stats_print(const struct cpprof__heap_stats *stats,
                         struct cpprof__text_profile *text);

#endif
