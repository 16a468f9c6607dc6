/* SPDX-License-Identifier: MIT */
/*
 * Option structs of public calls begin with their size, so that programs and
 * libraries of different versions work together.
 */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include <cpprof/options.h>
#include <cpprof/status.h>
#include <stddef.h>

/*
 * Copy the caller's options over the defaults. `options` has n_options bytes
 * and begins with a size_t. `given` may be NULL; its first size_t is its
 * length. If it is shorter, the rest keeps its defaults. If it is longer, the
 * part that we do not know must be zero bytes.
 *
 * Errors: CPPROF_INVALID; `what` names the struct.
 */
enum cpprof_status
cpprof__options(void *options, size_t n_options, const void *given,
                const char *what, struct cpprof_error *error);

/*
 * The rate and the depth of a sampler: 0 becomes 100 Hz, and 128 frames.
 *
 * Errors: CPPROF_INVALID (more than the most).
 */
enum cpprof_status
cpprof__options_sampling(uint32_t *rate_hz, uint32_t most_hz,
                         uint32_t *max_depth, uint32_t most_frames,
                         struct cpprof_error *error);

/* The flags that each struct takes. */
#define CPPROF__CPU_FLAGS                                                      \
    (CPPROF_FLAG_NO_LABELS | CPPROF_FLAG_LEGACY | CPPROF_FLAG_NO_DECOYS)
#define CPPROF__HEAP_FLAGS                                                     \
    (CPPROF_FLAG_ALLOCS | CPPROF_FLAG_PEAK | CPPROF_FLAG_LABELS |              \
     CPPROF_FLAG_LEGACY)
#define CPPROF__PROFILE_FLAGS                                                  \
    (CPPROF_FLAG_LABELS | CPPROF_FLAG_PEAK | CPPROF_FLAG_IN_PROGRESS |         \
     CPPROF_FLAG_LEGACY)

/* Errors: CPPROF_INVALID (flags that are not known, no enum cpprof_symbolize).
 */
enum cpprof_status
cpprof__options_flags(uint32_t flags, uint32_t known,
                      enum cpprof_symbolize symbolize,
                      struct cpprof_error *error);

#endif
