/* SPDX-License-Identifier: MIT */
/*
 * What a wall profile has counted, by stack, labels and state; and the file
 * that it becomes.
 */
#ifndef COLLECT_WALL_COUNTS_H
#define COLLECT_WALL_COUNTS_H

#include <cpprof/profiles.h>

#include <stdbool.h>
#include <stdint.h>

/* ORDER: state_names in wall_profile.c. */
enum cpprof__wall_state {
    CPPROF__WALL_RUNNING,
    CPPROF__WALL_SLEEPING,
    CPPROF__WALL_UNINTERRUPTIBLE,
};

struct cpprof__wall_count {
    uint32_t stack;  /* node of cpprof__tables.tree; 0: no room */
    uint32_t labels; /* cpprof__heap_label_number(), or 0 */
    uint32_t state;
    uint32_t pad;
    int64_t n; /* samples; 0: the place is free */
    int64_t ns;
};

/* A hash table with open addressing; zero it. */
struct cpprof__wall_counts {
    struct cpprof__wall_count *places;
    uint32_t n_places; /* a power of two */
    uint32_t n;
    int64_t lost_ns; /* found no memory */
};

/* key: .stack, .labels, .state. */
void
cpprof__wall_add(struct cpprof__wall_counts *counts,
                 const struct cpprof__wall_count *key, int64_t ns);

void
cpprof__wall_counts_free(struct cpprof__wall_counts *counts);

/* About the whole profile. */
struct cpprof__wall_summary {
    struct cpprof_wall_options options;
    int64_t time_ns; /* CLOCK_REALTIME of the start */
    int64_t duration_ns;
    uint32_t n_threads; /* at once, at most */
    uint64_t n_looks;
    uint64_t n_asked; /* of those, threads that were interrupted */
};

/* The writer is closed by this call. */
enum cpprof_status
cpprof__wall_write(const struct cpprof__wall_counts *counts,
                   const struct cpprof__wall_summary *summary,
                   struct cpprof_writer writer, struct cpprof_error *error);

#endif
