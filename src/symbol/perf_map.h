/* SPDX-License-Identifier: MIT */
/*
 * Names of code made at run time, from the file that JIT compilers leave for
 * profilers: /tmp/perf-PID.map, lines of "START SIZE NAME", both in hex
 * without prefix. A later line wins over an earlier one at the same address,
 * since compilers append when they reuse memory.
 *
 * Source: the Linux tree, tools/perf/Documentation/jit-interface.txt.
 */
#ifndef SYMBOL_PERF_MAP_H
#define SYMBOL_PERF_MAP_H

#include "base/array.h"
#include "base/buffer.h"
#include "base/ranges.h"

#include <sys/types.h>
#include <time.h>

struct cpprof__perf_map {
    int pid;
    const char *proc; /* where that is its pid */
    /* The file as it was when read. */
    struct cpprof__buffer text;
    struct cpprof__ranges ranges; /* value: index of symbols */
    CPPROF__ARRAY(struct cpprof__perf_symbol {
        uint32_t offset; /* of the name in text */
        uint32_t n;
    })
    symbols;
    /* What tells whether it has changed since. */
    dev_t device;
    ino_t inode;
    off_t n_bytes;
    struct timespec modified;
    uint64_t next_look_ns; /* CLOCK_MONOTONIC; not looked at before */
};

/* All else is zero. */
void
cpprof__perf_map_init(struct cpprof__perf_map *map, const char *proc, int pid);

/*
 * The name of the code at pc, *n bytes, not terminated, alive until the next
 * call; NULL when the file has none. The file is looked at again when 50 ms
 * have passed, and after one that took long to read, 20 times as long.
 */
const char *
cpprof__perf_map_find(struct cpprof__perf_map *map, uint64_t pc, size_t *n);

void
cpprof__perf_map_free(struct cpprof__perf_map *map);

#endif
