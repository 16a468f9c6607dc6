/* SPDX-License-Identifier: MIT */
/*
 * The profiles of one interval after another, of all kinds of a plan. The next
 * capture begins before the last one ends: what is sampled between the two is
 * in both rather than in none.
 */
#ifndef PUSH_ROUNDS_H
#define PUSH_ROUNDS_H

#include "base/buffer.h"
#include "push/message.h"

#include <cpprof/captures.h>

/* Writes to file. */
struct cpprof__push_capture {
    struct cpprof_capture *capture; /* NULL: does not run */
    struct cpprof__buffer *file;
    int64_t from_ns;
};

struct cpprof__push_rounds {
    const struct cpprof__push_plan *plan;

    /* What is done with a profile; its memory is the caller's. */
    void (*take)(void *ctx, const struct cpprof__push_profile *profile);
    void (*complain)(void *ctx, const struct cpprof_error *error);
    void *ctx;

    /* Power of two by which captures that begin have less than their rate, and
     * those that run. */
    unsigned slower, are_slower;

    struct cpprof__push_capture captures[CPPROF__PUSH_KINDS];
    struct cpprof_snapshot *snapshots[CPPROF__PUSH_KINDS];
    int64_t from_ns[CPPROF__PUSH_KINDS]; /* when its interval began */
    uint32_t absent; /* kinds that there cannot be here: told once */
};

void
cpprof__push_rounds_begin(struct cpprof__push_rounds *rounds);
/* What comes behind the end of an interval: another one; nothing of CPU and
 * wall time until cpprof__push_rounds_resume(); or nothing at all. */
enum cpprof__push_turn {
    CPPROF__PUSH_ON,
    CPPROF__PUSH_REST,
    CPPROF__PUSH_LAST,
};
void
cpprof__push_rounds_turn(struct cpprof__push_rounds *rounds,
                         enum cpprof__push_turn turn);
void
cpprof__push_rounds_resume(struct cpprof__push_rounds *rounds);
/* End without a profile. */
void
cpprof__push_rounds_drop(struct cpprof__push_rounds *rounds);

#endif
