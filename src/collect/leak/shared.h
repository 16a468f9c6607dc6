/* SPDX-License-Identifier: MIT */
/*
 * What the process, its child and the one that stops threads (leak.h) write for
 * each other: one block of shared memory, which is there for one snapshot.
 */
#ifndef COLLECT_LEAK_SHARED_H
#define COLLECT_LEAK_SHARED_H

#include "collect/signal/heap/heap_tables.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bounds: what does not fit gives no result. */
#define CPPROF__LEAK_THREADS 8192
#define CPPROF__LEAK_WORDS   (1u << 18)
#define CPPROF__LEAK_MAPS    (16u << 20)

/* How the child ended; the texts are in leak.c. */
enum cpprof__leak_end {
    CPPROF__LEAK_DIED, /* or is under way */
    CPPROF__LEAK_FOUND,
    CPPROF__LEAK_NO_MEMORY,
    CPPROF__LEAK_NO_MAPS,  /* /proc/self/maps or pagemap cannot be read */
    CPPROF__LEAK_NO_PAGES, /* memory that children do not get, unreadable */
};

/* What became of stopping threads. */
enum cpprof__leak_stop {
    CPPROF__STOP_UNDER_WAY,
    CPPROF__STOP_ALL_STAND,
    CPPROF__STOP_SNAPPED, /* the child is there: they may go on */
    CPPROF__STOP_REFUSED, /* ptrace: .sys */
    CPPROF__STOP_LATE,    /* one did not come to a stop: .late_tid */
    CPPROF__STOP_TOO_MANY,
};

struct cpprof__leak_thread {
    int32_t tid;
    uintptr_t sp; /* 0: not known, so all of its stack is looked at */
    uintptr_t tp; /* the thread pointer, or 0: not known */
};

struct cpprof__leak_range {
    uintptr_t start, end;
};

struct cpprof__leak_shared {
    /* Of the process. */
    int32_t pid;
    bool walks;         /* the heap is glibc's */
    bool knows_threads; /* .threads are all, with registers */
    bool tells_forks;   /* a thread would have to answer before there is a
                           child: there must be none */
    struct cpprof__leak_range not_ours[3]; /* no roots: they are the profiler's;
                                              the last one is shared */
    uint32_t n_threads;
    uint32_t n_words; /* in registers, and in what the kernel keeps */
    size_t n_maps;    /* as the process saw them before */

    /* Of the one that stops threads. */
    uint32_t stop; /* enum cpprof__leak_stop; futex */
    int32_t sys;
    int32_t late_tid;
    uint64_t stopped_ns, went_on_ns;

    /* Of the child. */
    uint32_t end; /* enum cpprof__leak_end; futex */
    uint64_t n_lost;
    uint64_t n_unwalked; /* live blocks that are in no area */
    uint64_t n_blocks;   /* in areas */
    uint64_t root_bytes, block_bytes;
    uint64_t cpu_ns;

    struct cpprof__leak_thread threads[CPPROF__LEAK_THREADS];
    uint64_t words[CPPROF__LEAK_WORDS];
    /* A bit for each entry of the table of live blocks. */
    uint64_t lost[CPPROF__HEAP_LIVE / 64];
    uint64_t direct[CPPROF__HEAP_LIVE / 64];
    uint32_t uses[CPPROF__HEAP_LIVE]; /* .use of those that are lost */
    char maps[CPPROF__LEAK_MAPS];
};

#endif
