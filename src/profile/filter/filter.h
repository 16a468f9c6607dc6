/* SPDX-License-Identifier: MIT */
/*
 * Leaving out samples, frames and labels. Each call changes the profile in
 * place, but first matches whatever it has to match, so that a profile is
 * unchanged when that fails: CPPROF_NOMEM.
 *
 * Source: profile/filter.go, profile/prune.go, internal/driver/driver_focus.go,
 * internal/driver/tagroot.go.
 */
#ifndef PROFILE_FILTER_H
#define PROFILE_FILTER_H

#include "profile/filter/regexp.h"
#include "profile/model/model.h"

/* Which expressions matched anything. */
struct cpprof__name_matches {
    bool focus, ignore, hide, show;
};

/* Any of them may be NULL. Frames are matched by the names and files of their
 * functions and by the file of their mapping. */
struct cpprof__name_filter {
    struct cpprof__regexp *focus;  /* keep samples with such a frame */
    struct cpprof__regexp *ignore; /* drop samples with such a frame */
    struct cpprof__regexp *hide;   /* drop such frames */
    struct cpprof__regexp *show;   /* drop all other frames */
};

enum cpprof_status
cpprof__filter_names(struct pprof_profile *p,
                     const struct cpprof__name_filter *filter,
                     struct cpprof__name_matches *matches,
                     struct cpprof_error *error);

/* Drop the frames above the highest matching one, and samples without any. */
enum cpprof_status
cpprof__show_from(struct pprof_profile *p, struct cpprof__regexp *show_from,
                  bool *matched, struct cpprof_error *error);

/* Drop all frames below the lowest matching one. */
enum cpprof_status
cpprof__prune_from(struct pprof_profile *p, struct cpprof__regexp *prune_from,
                   struct cpprof_error *error);

/* A byte for each label set: is it used by a sample? The caller frees them;
 * NULL when out of memory. Sets that no sample uses any more stay in the table.
 */
uint8_t *
cpprof__used_label_sets(const struct pprof_profile *p);

/* The unit of every numeric label key: the first one that a sample gives, or
 * what the key suggests. */
struct cpprof__label_units {
    uint32_t *units; /* by key; CPPROF__NO_STRING: not such a key */
    size_t n;
};

enum cpprof_status
cpprof__label_units_make(struct pprof_profile *p,
                         struct cpprof__label_units *units,
                         struct cpprof_error *error);

/*
 * For each key with numbers of several units, by the names of the keys: say
 * which one is used, and which others there are. Numbers of those are read as
 * if they had it. Source: Go's identifyNumLabelUnits.
 */
enum cpprof_status
cpprof__label_units_tell(const struct pprof_profile *p,
                         const struct cpprof__label_units *units,
                         void (*tell)(void *ctx, const char *line), void *ctx,
                         struct cpprof_error *error);
void
cpprof__label_units_free(struct cpprof__label_units *units);

/*
 * Keep the samples whose labels match focus and not ignore; either may be NULL
 * or "". An expression is a range of numbers, "16kb:4mb", or regexps parted by
 * commas that all must match; "KEY=" in front restricts it to one key, of
 * which then any regexp may match. matched[0], [1] tell of focus and ignore.
 */
enum cpprof_status
cpprof__filter_tags(struct pprof_profile *p,
                    const struct cpprof__label_units *units, const char *focus,
                    const char *ignore, bool matched[2],
                    struct cpprof_error *error);

/* The part of such an expression that is a range, or NULL. */
const char *
cpprof__tag_range(const char *expression);

/* Drop labels whose key does not match show or matches hide. */
enum cpprof_status
cpprof__filter_tag_keys(struct pprof_profile *p, struct cpprof__regexp *show,
                        struct cpprof__regexp *hide, bool matched[2],
                        struct cpprof_error *error);

/*
 * Put a frame named after its labels at the root, or at the leaf, of every
 * sample, one for each key of a comma-separated list. Numbers are printed in
 * unit. matched[0], [1]: some sample has a root, leaf key.
 */
enum cpprof_status
cpprof__add_tag_frames(struct pprof_profile *p, const char *root_keys,
                       const char *leaf_keys, const char *unit, bool matched[2],
                       struct cpprof_error *error);

#endif
