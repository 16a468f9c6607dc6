/* SPDX-License-Identifier: MIT */
/*
 * A CPU profile in the binary form that gperftools and Go up to 1.8 write: a
 * header, records of a count and a stack, a trailer, and the mappings as in
 * /proc/self/maps. It has no names and no labels, and its period is in
 * microseconds.
 *
 * Readers strip a caller that nearly all stacks have right above the leaf,
 * because they take it for a frame of the profiler's signal handler. They do so
 * twice. So decoys follow the samples: records of the count 0 with another
 * caller, enough that no caller is in nearly all records.
 *
 * Source: gperftools doc/cpuprofile-fileformat.html, src/profiledata.cc;
 * google/pprof profile/legacy_profile.go (cpuProfile).
 */
#ifndef COLLECT_CPU_LEGACY_H
#define COLLECT_CPU_LEGACY_H

#include "base/buffer.h"
#include "collect/store/store.h"
#include <cpprof/writer.h>

/* One being written. */
struct cpprof__cpu_legacy {
    struct cpprof_writer writer;
    struct cpprof_error error;  /* the first failure; sticky */
    struct cpprof__buffer out;  /* not yet written */
    struct cpprof__buffer maps; /* lines of mappings, each once */
    struct cpprof__buffer
        ranges; /* struct of cpu_legacy.c, one for each mapping */
    uint64_t n_records;
    bool no_decoys;
};

/* The writer is the profile's from here on. */
void
cpprof__cpu_legacy_begin(struct cpprof__cpu_legacy *legacy, uint64_t period_ns,
                         bool no_decoys, struct cpprof_writer writer);

/* Add all that a store holds. */
void
cpprof__cpu_legacy_add(struct cpprof__cpu_legacy *legacy,
                       const struct cpprof__store *store);

/* Add what was lost, write the end, close the writer and free. Returns the
 * first failure of all. */
enum cpprof_status
cpprof__cpu_legacy_end(struct cpprof__cpu_legacy *legacy, uint64_t lost,
                       struct cpprof_error *error);

#endif
