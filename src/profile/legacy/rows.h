/* SPDX-License-Identifier: MIT */
/*
 * What readers get, and what those of text formats have in common: a header,
 * then rows of numbers and the addresses of a stack, then sections of which one
 * is the memory map.
 */
#ifndef PROFILE_LEGACY_ROWS_H
#define PROFILE_LEGACY_ROWS_H

#include "profile/legacy/legacy.h"
#include "profile/legacy/lines.h"
#include "profile/model/make.h"

struct cpprof__rows {
    struct cpprof__legacy_lines lines; /* at first the whole file */
    struct cpprof__text line; /* read last; empty before and behind them */
    struct pprof_profile *p;
    struct cpprof__maker maker;            /* its failure ends the reading */
    struct cpprof__legacy_addresses stack; /* of the next sample, leaf first */
    CPPROF__ARRAY(uint32_t) frames;
};

/* Read the next line into rows->line; false behind the last, or when memory
 * ran out. */
bool
cpprof__rows_next(struct cpprof__rows *rows);

/* Append the "0x..." addresses of a text to the stack; `line` is for the error
 * "malformed sample: LINE: failed to parse as hex 64-bit number: WORD". */
enum cpprof_status
cpprof__rows_stack(struct cpprof__rows *rows, struct cpprof__text text,
                   struct cpprof__text line, struct cpprof_error *error);

/* What addresses a stack holds: a return address is one behind the call. */
enum cpprof__stack_kind {
    CPPROF__STACK_EXACT,  /* instructions, all of them */
    CPPROF__STACK_CALLER, /* return addresses, but the leaf is exact */
    CPPROF__STACK_RETURN, /* return addresses, all of them */
};

/* A sample of the stack, which is empty then, and a value for each type. */
void
cpprof__rows_sample(struct cpprof__rows *rows, enum cpprof__stack_kind kind,
                    const int64_t *values);

/* Read the sections from rows->line on, and give locations their mappings. */
enum cpprof_status
cpprof__rows_end(struct cpprof__rows *rows, struct cpprof_error *error);

/* Drop the second frame where it is the leaf once more, one lower: a leaf comes
 * from the signal's context, and again from unwinding, which takes it for a
 * return address. */
void
cpprof__drop_double_leaves(struct pprof_profile *p);

/* --------------------------------------------------- rows of heap profiles
 * ----
 */

/*
 * Make the sample types of a heap profile, allocations first so that what is in
 * use is shown by default, and its period. Returns the key "bytes" of the mean
 * size of an object, which each sample has as a label.
 */
uint32_t
cpprof__make_heap_types(struct cpprof__maker *m, bool has_alloc,
                        int64_t period);

/*
 * From the allocations that a heap profiler sampled to those that were made:
 * the estimate in place of what was sampled. A profiler that samples on average
 * every `rate` bytes, as a Poisson process, sees an allocation of s bytes with
 * probability 1 - exp(-s / rate). A row has a count and a sum of sizes only, so
 * the mean size stands for all of them.
 *
 * Zero of either is none of both; a rate of 1 means that everything was
 * sampled, one below that it is not known: both stay as they are.
 *
 * Source: profile/legacy_profile.go scaleHeapSample.
 */
void
cpprof__scale_heap_sample(int64_t *count, int64_t *size, int64_t rate);

#endif
