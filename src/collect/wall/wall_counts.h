/* SPDX-License-Identifier: MIT */
/*
 * The counts of a wall profile, by stack, labels and state; and the file that
 * they become.
 */
#ifndef COLLECT_WALL_COUNTS_H
#define COLLECT_WALL_COUNTS_H

#include "collect/encode/source.h"
#include <cpprof/profiles.h>
#include <cpprof/wall.h>

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
    uint32_t labels; /* cpprof__label_set_number(), or 0 */
    uint32_t state;
    uint32_t number; /* numbers in order, from 1 on; also the number of its
                        record in cpprof__wall_kept */
    int64_t n;       /* samples; 0: the slot is free */
    int64_t ns;
};

/* A hash table with open addressing; zero it. */
struct cpprof__wall_counts {
    struct cpprof__wall_count *slots;
    uint32_t n_slots; /* a power of two */
    uint32_t n;
    int64_t lost_ns; /* found no memory */
    bool is_kept;
};

/* key: .stack, .labels, .state. */
void
cpprof__wall_add(struct cpprof__wall_counts *counts,
                 const struct cpprof__wall_count *key, int64_t ns);

/* Is it time to go on with an empty table? One that is kept for a recorder has
 * no label sets any more from then on. */
bool
cpprof__wall_counts_are_full(const struct cpprof__wall_counts *counts);

void
cpprof__wall_counts_free(struct cpprof__wall_counts *counts);

/* The counts at one moment. */
struct cpprof__wall_base {
    struct cpprof__wall_sum {
        int64_t n;
        int64_t ns;
    } * at; /* by number - 1; NULL: nothing */
    uint32_t n;
    int64_t lost_ns;
};
/* False: no memory. */
bool
cpprof__wall_base_take(struct cpprof__wall_base *base,
                       const struct cpprof__wall_counts *counts);
void
cpprof__wall_base_free(struct cpprof__wall_base *base);

/* Add to since what came after base, as far as flags (CPPROF_FLAG_*) want it.
 * False: no memory. */
bool
cpprof__wall_counts_since(const struct cpprof__wall_counts *counts,
                          const struct cpprof__wall_base *base, uint32_t flags,
                          struct cpprof__wall_counts *since);

/* About the whole profile. */
struct cpprof__wall_summary {
    struct cpprof_wall_options options;
    const struct cpprof__source *source; /* NULL: this process */
    int64_t time_ns;                     /* CLOCK_REALTIME of the start */
    int64_t duration_ns;
    uint32_t n_threads; /* at once, at most */
    uint64_t n_looks;
    uint64_t n_asked; /* of those, looks that asked the thread */
};

/* ---- for a recorder --------------------------------------------------- */

/* Bound: 65 536 records, 2 MiB of address space. Time that finds no room is
 * counted as lost. */
#define CPPROF__WALL_RECORDS (1u << 16)

struct cpprof__wall_kept_head {
    char magic[8];
    uint32_t n_records; /* record 0 is not used, nor counted */
    uint32_t rate_hz;
    uint32_t flags; /* CPPROF_FLAG_* */
    uint32_t n_threads;
    uint64_t n_looks;
    uint64_t n_asked;
    int64_t time_ns;
    int64_t duration_ns;
    int64_t lost_ns;
};

/* One block of fixed layout without pointers. Another process may read a copy
 * of it (signal/tables/mirror.h). */
struct cpprof__wall_kept {
    union {
        struct cpprof__wall_kept_head head;
        char page[4096];
    };
    struct cpprof__wall_count records[CPPROF__WALL_RECORDS];
};
#pragma GCC visibility push(hidden)
extern struct cpprof__wall_kept *cpprof__wall_kept; /* NULL: for nobody */
#pragma GCC visibility pop

/* False: no memory. */
bool
cpprof__wall_keep_reserve(void);

/* From here on keep for a recorder what is added to counts, if there is room.
 */
void
cpprof__wall_keep_begin(struct cpprof__wall_counts *counts);

/* What the head says of it now. */
void
cpprof__wall_keep_summary(const struct cpprof__wall_summary *summary);

/* In a child made by fork: nothing is kept yet. */
void
cpprof__wall_keep_forked(void);

/* The counts and the summary of a copy. False: it is no copy, or it is empty.
 * The slots lie in the copy, and their order changes. */
bool
cpprof__wall_kept_open(struct cpprof__wall_kept *copy,
                       struct cpprof__wall_counts *counts,
                       struct cpprof__wall_summary *summary);

/* ----------------------------------------------------------------------- */

/* The writer is closed by this call. */
enum cpprof_status
cpprof__wall_write(const struct cpprof__wall_counts *counts,
                   const struct cpprof__wall_summary *summary,
                   struct cpprof_writer writer, struct cpprof_error *error);

/* The same as folded stacks. */
enum cpprof_status
cpprof__wall_write_folded(struct cpprof__source_profile *p,
                          const struct cpprof__wall_counts *counts,
                          struct cpprof_writer writer,
                          struct cpprof_error *error);

#endif
