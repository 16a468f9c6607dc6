/* SPDX-License-Identifier: MIT */
/*
 * The names that `google-pprof --raw` (perl) puts in front of a profile:
 *
 *     --- symbol
 *     binary=/bin/demo
 *     0x000000000040101f caller--function inlined into it
 *     ---
 *     --- profile          (or heap, growth, contention)
 *     the profile
 *
 * Source: gperftools src/pprof, PrintSymbolizedProfile, FetchSymbols.
 */
#ifndef PROFILE_LEGACY_SYMBOLIZED_H
#define PROFILE_LEGACY_SYMBOLIZED_H

#include "profile/legacy/lines.h"
#include "profile/model/model.h"

struct cpprof__legacy_name {
    uint64_t address;
    struct cpprof__text names; /* "outer--inner", in the input */
};

/* Zero bytes is a valid, empty table. */
struct cpprof__legacy_names {
    CPPROF__ARRAY(struct cpprof__legacy_name) list; /* by address */
    struct cpprof__text binary;
};

/*
 * Read the names at *data; it moves to the profile behind them. Where there
 * are none nothing moves.
 */
enum cpprof_status
cpprof__read_names(const char **data, size_t *n,
                   struct cpprof__legacy_names *out,
                   struct cpprof_error *error);

/* Give its names to each location. */
enum cpprof_status
cpprof__apply_names(const struct cpprof__legacy_names *names,
                    struct pprof_profile *p, struct cpprof_error *error);

#endif
