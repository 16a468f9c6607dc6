/* SPDX-License-Identifier: MIT */
/*
 * Making a profile, and editing one that was read: all that Go's
 * profile.Profile allows with its public fields.
 *
 *     struct pprof_profile *p;
 *     uint32_t function, location;
 *     int64_t values[] = {12};
 *
 *     pprof_new(&p, &error);
 *     pprof_add_sample_type(p, "requests", "count", &error);
 *     pprof_add_function(p, &(struct pprof_new_function){
 *         .size = sizeof (struct pprof_new_function), .name = "serve"},
 *         &function, &error);
 *     pprof_add_location(p, &(struct pprof_new_location){
 *         .size = sizeof (struct pprof_new_location),
 *         .mapping = PPROF_NONE,
 *         .lines = &(struct pprof_line){.line = 7, .function = function},
 *         .n_lines = 1}, &location, &error);
 *     pprof_add_sample(p, &(struct pprof_new_sample){
 *         .size = sizeof (struct pprof_new_sample),
 *         .locations = &location, .n_locations = 1, .values = values},
 *         NULL, &error);
 *
 * Indices are those of pprof_mappings() and its like. A record that is added
 * gets an id that no other has. Texts and arrays are copied, and may be the
 * profile's own: an edit may give what pprof_text(), pprof_lines() or
 * pprof_get_sample() has just returned. A text that is NULL is "".
 *
 * A call that fails leaves the profile as it was. After one that succeeds
 * pprof_check() finds the profile whole. Text that nothing refers to any more
 * stays in memory until pprof_compact(), and is not written.
 *
 * Source: github.com/google/pprof/profile.Profile.
 */
#ifndef PPROF_BUILD_H
#define PPROF_BUILD_H

#include <stdbool.h>

#include <cpprof/pprof/profile.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Make a profile with nothing in it.
 *
 * Errors:  CPPROF_NOMEM.
 * Owner:   the caller frees *profile with pprof_free().
 * Safety:  MT. Not AS.
 */
CPPROF_API enum cpprof_status
pprof_new(struct pprof_profile **profile, struct cpprof_error *error);

/* -------------------------------------------- what there is once ---- */

/*
 * A sample type more, in which samples that are there have the value 0; another
 * name for one; one less, and with it that value of every sample. The last one
 * of a profile with samples stays.
 *
 * Errors:  CPPROF_INVALID (index), CPPROF_NOMEM.
 * Safety:  OBJ.
 * Source:  Profile.SampleType.
 */
CPPROF_API enum cpprof_status
pprof_add_sample_type(struct pprof_profile *profile, const char *type,
                      const char *unit, struct cpprof_error *error);
CPPROF_API enum cpprof_status
pprof_set_sample_type(struct pprof_profile *profile, size_t index,
                      const char *type, const char *unit,
                      struct cpprof_error *error);
CPPROF_API enum cpprof_status
pprof_remove_sample_type(struct pprof_profile *profile, size_t index,
                         struct cpprof_error *error);

/*
 * Set what a profile has once. Frames are regular expressions, which
 * pprof_drop_frames() applies.
 *
 * Units:   time since 1970 and duration in nanoseconds, 0: unknown; the period
 *          in its unit.
 * Errors:  CPPROF_NOMEM.
 * Safety:  OBJ.
 * Source:  Profile.PeriodType, Period, TimeNanos, DurationNanos,
 *          DefaultSampleType, DocURL, DropFrames, KeepFrames.
 */
CPPROF_API enum cpprof_status
pprof_set_period(struct pprof_profile *profile, const char *type,
                 const char *unit, int64_t period, struct cpprof_error *error);
CPPROF_API void
pprof_set_time(struct pprof_profile *profile, int64_t time_ns,
               int64_t duration_ns);
CPPROF_API enum cpprof_status
pprof_set_default_sample_type(struct pprof_profile *profile, const char *type,
                              struct cpprof_error *error);
CPPROF_API enum cpprof_status
pprof_set_doc_url(struct pprof_profile *profile, const char *url,
                  struct cpprof_error *error);
CPPROF_API enum cpprof_status
pprof_set_frames(struct pprof_profile *profile, const char *drop,
                 const char *keep, struct cpprof_error *error);

/* Take away all comments; pprof_add_comment() adds. Safety: OBJ. */
CPPROF_API void
pprof_remove_comments(struct pprof_profile *profile);

/* ---------------------------------------------------------- tables ---- */

struct pprof_new_mapping {
    size_t size; /* sizeof (struct pprof_new_mapping) */
    uint64_t start;
    uint64_t limit; /* first address behind it */
    uint64_t offset;
    const char *file;
    const char *build_id;
    uint32_t flags; /* PPROF_HAS_* */
};

struct pprof_new_function {
    size_t size; /* sizeof (struct pprof_new_function) */
    const char *name;
    const char *system_name; /* as the linker knows it; NULL: as name */
    const char *file;
    int64_t start_line; /* 0: unknown */
};

struct pprof_new_location {
    size_t size; /* sizeof (struct pprof_new_location) */
    uint64_t address;
    uint32_t mapping;               /* index, or PPROF_NONE */
    uint32_t flags;                 /* PPROF_FOLDED */
    const struct pprof_line *lines; /* the function inlined deepest first */
    size_t n_lines;
};

/*
 * Add a record to a table, or put another one in the place of one that is
 * there, which keeps its id.
 *
 * index    of the new record; may be NULL.
 *
 * Errors:  CPPROF_INVALID (an index outside its table, lines that are NULL,
 *          flags, the size of a struct), CPPROF_LIMIT (2^32 - 2 records),
 *          CPPROF_NOMEM.
 * Safety:  OBJ.
 * Source:  Profile.Mapping, Function, Location.
 */
CPPROF_API enum cpprof_status
pprof_add_mapping(struct pprof_profile *profile,
                  const struct pprof_new_mapping *mapping, uint32_t *index,
                  struct cpprof_error *error);
CPPROF_API enum cpprof_status
pprof_set_mapping(struct pprof_profile *profile, size_t index,
                  const struct pprof_new_mapping *mapping,
                  struct cpprof_error *error);
CPPROF_API enum cpprof_status
pprof_add_function(struct pprof_profile *profile,
                   const struct pprof_new_function *function, uint32_t *index,
                   struct cpprof_error *error);
CPPROF_API enum cpprof_status
pprof_set_function(struct pprof_profile *profile, size_t index,
                   const struct pprof_new_function *function,
                   struct cpprof_error *error);
CPPROF_API enum cpprof_status
pprof_add_location(struct pprof_profile *profile,
                   const struct pprof_new_location *location, uint32_t *index,
                   struct cpprof_error *error);
CPPROF_API enum cpprof_status
pprof_set_location(struct pprof_profile *profile, size_t index,
                   const struct pprof_new_location *location,
                   struct cpprof_error *error);

/* --------------------------------------------------------- samples ---- */

/* A text has .text, a number has .num and maybe .unit. */
struct pprof_new_label {
    const char *key;
    const char *text; /* NULL: a number */
    int64_t num;
    const char *unit; /* or NULL */
};

struct pprof_new_sample {
    size_t size;               /* sizeof (struct pprof_new_sample) */
    const uint32_t *locations; /* indices, leaf first */
    size_t n_locations;
    const int64_t *values; /* one for each sample type */
    const struct pprof_new_label *labels;
    size_t n_labels;
};

/*
 * Add a sample, or put another one in the place of one that is there. After the
 * call, what pprof_get_sample() showed is not valid any more.
 *
 * profile.proto cannot tell a label with an empty text, or with the number 0
 * and no unit, from none: a reader of the file does not see such a label.
 *
 * index    of the new sample; may be NULL.
 *
 * Errors:  CPPROF_INVALID (no sample type, no values, a label without a key,
 *          locations or labels that are NULL, an index outside its table, the
 *          size of the struct), CPPROF_LIMIT, CPPROF_NOMEM.
 * Safety:  OBJ.
 * Source:  Profile.Sample.
 */
CPPROF_API enum cpprof_status
pprof_add_sample(struct pprof_profile *profile,
                 const struct pprof_new_sample *sample, size_t *index,
                 struct cpprof_error *error);
CPPROF_API enum cpprof_status
pprof_set_sample(struct pprof_profile *profile, size_t index,
                 const struct pprof_new_sample *sample,
                 struct cpprof_error *error);

/* Keep the samples for which keep(ctx, index) holds, in their order; index is
 * that of before. Safety: OBJ; keep() does not change the profile. */
CPPROF_API void
pprof_keep_samples(struct pprof_profile *profile,
                   bool (*keep)(void *ctx, size_t index), void *ctx);

#ifdef __cplusplus
}
#endif

#endif
