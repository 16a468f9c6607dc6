/* SPDX-License-Identifier: MIT */
/*
 * A profile in memory: flat tables that refer to each other by index.
 *
 * Samples are the many: 16 bytes each, their values and their frames in two
 * arrays of their own. Everything that changes a profile works in place; a
 * sample's frames only ever get shorter, or move to the end of `frames`.
 *
 * Invariants, checked by pprof_check():
 * - values.n is samples.n * sample_types.n;
 * - the frames of samples do not overlap and lie inside `frames`; each is an
 *   index into `locations`;
 * - the lines of locations do not overlap and lie inside `lines`; each has a
 *   function;
 * - ids of mappings, locations, functions are unique and not 0.
 */
#ifndef PROFILE_MODEL_H
#define PROFILE_MODEL_H

#include "base/array.h"
#include "profile/model/labels.h"
#include "profile/model/strings.h"
#include <cpprof/pprof/change.h>

struct cpprof__sample {
    size_t first_frame; /* index into frames, leaf first */
    uint32_t n_frames;
    uint32_t labels; /* label set */
};

/*
 * The largest id of the first n records of a table, UINT64_MAX aside: a file
 * may have any id, and that one says nothing of the others. A new id is one
 * above the largest. It is remembered so that adding is not quadratic; records
 * that were added since are looked at then.
 */
struct cpprof__ids {
    uint64_t max;
    size_t n;
};

struct pprof_profile {
    struct pprof_info info;
    struct cpprof__strings strings;
    struct cpprof__label_sets labels;
    CPPROF__ARRAY(struct pprof_value_type) sample_types;
    CPPROF__ARRAY(struct pprof_mapping) mappings;
    CPPROF__ARRAY(struct pprof_location) locations;
    CPPROF__ARRAY(struct pprof_line) lines;
    CPPROF__ARRAY(struct pprof_function) functions;
    CPPROF__ARRAY(uint32_t) comments;
    CPPROF__ARRAY(struct cpprof__sample) samples;
    CPPROF__ARRAY(int64_t) values;
    CPPROF__ARRAY(uint32_t) frames;
    /* Zero bytes: not looked at. */
    struct cpprof__ids ids_of_mappings;
    struct cpprof__ids ids_of_functions;
    struct cpprof__ids ids_of_locations;
};

/* An empty profile, or NULL. */
struct pprof_profile *
cpprof__pprof_make(void);

/* An id that no record of a table has; 0 when none is left. Each of the n
 * records of `stride` bytes begins with its id. */
uint64_t
cpprof__next_id(struct cpprof__ids *ids, const void *records, size_t n,
                size_t stride);

#define CPPROF__NEXT_ID(p, table)                                              \
    cpprof__next_id(&(p)->ids_of_##table, (p)->table.at, (p)->table.n,         \
                    sizeof *(p)->table.at)

/* The index of the sample type of that name, or n_sample_types. */
size_t
cpprof__find_type(const struct pprof_profile *p, const char *name);

/* The unit that the name of a numeric label suggests. */
const char *
cpprof__suggested_unit(const char *key);

/* The values of a sample. */
static inline int64_t *
cpprof__values(const struct pprof_profile *p, size_t sample)
{
    return p->values.at + sample * p->sample_types.n;
}

/* The file name of a location's mapping; 0 where there is none. */
static inline uint32_t
cpprof__location_file(const struct pprof_profile *p,
                      const struct pprof_location *l)
{
    return l->mapping == PPROF_NONE ? 0 : p->mappings.at[l->mapping].file;
}

/*
 * Keep the samples for which keep(ctx, sample) holds, in their order. It may
 * change the sample's frames.
 */
void
cpprof__keep_samples(struct pprof_profile *p,
                     bool (*keep)(void *ctx, struct cpprof__sample *sample),
                     void *ctx);

#endif
