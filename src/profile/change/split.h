/* SPDX-License-Identifier: MIT */
/* A profile in parts that a server takes. */
#ifndef PROFILE_SPLIT_H
#define PROFILE_SPLIT_H

#include "base/buffer.h"

#include <cpprof/pprof/profile.h>

#include <stdbool.h>

/* What a part is no larger than: samples, and bytes of profile.proto before it
 * is compressed. */
struct cpprof__split_limits {
    size_t n_samples, n_bytes;
};

/* What Pyroscope takes in one profile, by its defaults: 4 MiB, but of a tenant
 * no more than 2 MiB at once (ingestion_burst_size_mb), and labels count. */
#define CPPROF__SPLIT_PYROSCOPE                                                \
    ((struct cpprof__split_limits){16000, (size_t)7 << 18})

/* A collector takes 20 MiB by its defaults, and OTLP is rarely larger than
 * profile.proto: where it is, it is not twice as large. */
#define CPPROF__SPLIT_OTLP                                                     \
    ((struct cpprof__split_limits){SIZE_MAX, (size_t)10 << 20})

/*
 * Hand the profile to `use`, whole or in parts within the limits: each sample
 * is in one of them, and each part has only the stacks and names of its
 * samples. `plain` is the part as profile.proto, which `use` may free. It
 * returns false to end it.
 *
 * Errors:  CPPROF_NOMEM. OK also where `use` ended it.
 */
enum cpprof_status
cpprof__split(const struct pprof_profile *p, struct cpprof__split_limits limits,
              bool (*use)(void *ctx, const struct pprof_profile *part,
                          struct cpprof__buffer *plain),
              void *ctx, struct cpprof_error *error);

#endif
