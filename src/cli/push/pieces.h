/* SPDX-License-Identifier: MIT */
/* A profile in parts that a server takes. */
#ifndef CLI_PUSH_PIECES_H
#define CLI_PUSH_PIECES_H

#include <cpprof/pprof/profile.h>

#include <stdbool.h>

/* What Pyroscope takes in one profile, by its default limits. */
#define CPPROF__PIECE_SAMPLES 16000
#define CPPROF__PIECE_BYTES   ((size_t)4 << 20)

/*
 * Hand the profile to `use`, as gzipped profile.proto, whole or in parts that
 * are no larger than that: each sample is in one of them. `use` returns false
 * to end it.
 *
 * Errors:  CPPROF_NOMEM. OK also where `use` ended it.
 */
enum cpprof_status
cpprof__pieces(const struct pprof_profile *p,
               bool (*use)(void *ctx, const void *data, size_t n), void *ctx,
               struct cpprof_error *error);

#endif
