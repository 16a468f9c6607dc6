/* SPDX-License-Identifier: MIT */
/*
 * Names of code made at run time, from the files that JIT compilers leave for
 * profilers: jit-PID.dump (symbol/jit_dump.h), and /tmp/perf-PID.map, lines of
 * "START SIZE NAME", both in hex without prefix. A later line wins over an
 * earlier one at the same address, since compilers append when they reuse
 * memory; who knows how long the file was when the code ran gets the last line
 * up to there. Where both have a name, the dump's is taken, which has lines.
 *
 * Source: the Linux tree, tools/perf/Documentation/jit-interface.txt.
 */
#ifndef SYMBOL_PERF_MAP_H
#define SYMBOL_PERF_MAP_H

#include "object/symbolizer.h"
#include "symbol/jit_dump.h"

#include <sys/types.h>
#include <time.h>

struct cpprof__perf_map {
    int pid;
    const struct cpprof__fetcher *fetcher; /* has where that is its pid */
    char *dump_path;                       /* NULL: none is mapped */
    bool has_dump;                         /* it was read once */
    bool has_told_cut;                     /* that a file is too large */
    struct cpprof__jit_file {
        struct cpprof__jit_table table; /* of the file as it was when read */
        /* What tells whether it has changed since. */
        dev_t device;
        ino_t inode;
        off_t n_bytes;
        struct timespec modified;
    } map, dump;
    uint64_t next_look_ns; /* CLOCK_MONOTONIC; not looked at before */
};

/* All else is zero. The fetcher stays. */
void
cpprof__perf_map_init(struct cpprof__perf_map *map,
                      const struct cpprof__fetcher *fetcher, int pid);

/* The process has mapped the file at path to execute: this is how the compiler
 * tells which jit-PID.dump is its own. Other files are nothing. */
void
cpprof__perf_map_see(struct cpprof__perf_map *map, const char *path);

/*
 * What is known of the code at pc when the dump, or without one the map, had
 * n_bytes; its strings live until the next call. False when no file has it. The
 * files are looked at again when 50 ms have passed, and after one that took
 * long to read, 20 times as long.
 */
bool
cpprof__perf_map_find(struct cpprof__perf_map *map, uint64_t pc,
                      uint64_t n_bytes, struct cpprof__jit_place *place);

void
cpprof__perf_map_free(struct cpprof__perf_map *map);

#endif
