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

/* Of profiles of one series and one millisecond Pyroscope's queries have one,
 * so each part begins later than the one before: all within this time. 1024
 * parts of the same size are told apart. */
#define CPPROF__SPLIT_ROOM_NS (1u << 30)

struct cpprof__split_part {
    const struct pprof_profile *profile;
    struct cpprof__buffer *plain; /* it as profile.proto; may be freed */
    uint64_t room_ns;             /* from its begin to that of any other */
};

enum cpprof__split_next {
    CPPROF__SPLIT_ON,
    CPPROF__SPLIT_HALVE, /* the part was not used: hand it over as two; of one
                          * sample the same as CPPROF__SPLIT_ON */
    CPPROF__SPLIT_END,
};

/*
 * Hand the profile to `use`, whole or in parts within the limits: each sample
 * is in one of them, and each part has only the stacks and names of its
 * samples. room_ns: in which its parts begin.
 *
 * Errors:  CPPROF_NOMEM. OK also where `use` ended it.
 */
enum cpprof_status
cpprof__split(const struct pprof_profile *p, struct cpprof__split_limits limits,
              uint64_t room_ns,
              enum cpprof__split_next (*use)(
                  void *ctx, const struct cpprof__split_part *part),
              void *ctx, struct cpprof_error *error);

#endif
