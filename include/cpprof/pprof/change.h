/* SPDX-License-Identifier: MIT */
/*
 * Changing profiles: filter, prune, aggregate, scale, label, compare, merge.
 *
 * Every call works in place and leaves a profile that pprof_check()
 * finds whole. Expressions are regular expressions of RE2, which matches them
 * in linear time, so that none can hang the program; NULL or "" stands for
 * none. A profile is unchanged when an expression does not compile.
 *
 * Errors that all calls with an expression have: CPPROF_BAD_DATA "parsing WHAT
 * regexp: ...", CPPROF_NOMEM.
 *
 * Source: github.com/google/pprof/profile/.
 */
#ifndef PPROF_CHANGE_H
#define PPROF_CHANGE_H

#include <cpprof/pprof/profile.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------- filter samples ---- */

/* Expressions over the names and files of functions, and files of mappings. */
struct pprof_name_filter {
    size_t size;        /* sizeof (struct pprof_name_filter) */
    const char *focus;  /* keep samples with a matching frame */
    const char *ignore; /* drop samples with a matching frame */
    const char *hide;   /* drop matching frames */
    const char *show;   /* drop all other frames */
};

/* Which expressions matched anything: bits of *matched below. */
#define PPROF_MATCHED_FOCUS  1u
#define PPROF_MATCHED_IGNORE 2u
#define PPROF_MATCHED_HIDE   4u
#define PPROF_MATCHED_SHOW   8u

/*
 * Filter by the names of frames.
 *
 * filter_names  all four expressions at once; samples without frames are
 *               dropped when hide or show took the last one.
 * show_from     drop the frames above the highest match, and samples without
 *               one; matched is MATCHED_SHOW.
 *
 * matched  bits of what matched; may be NULL.
 *
 * Safety:  OBJ.
 * Source:  profile.FilterSamplesByName, ShowFrom.
 */
CPPROF_API enum cpprof_status
pprof_filter_names(struct pprof_profile *profile,
                   const struct pprof_name_filter *filter, uint32_t *matched,
                   struct cpprof_error *error);
CPPROF_API enum cpprof_status
pprof_show_from(struct pprof_profile *profile, const char *show_from,
                uint32_t *matched, struct cpprof_error *error);

/*
 * Filter by labels.
 *
 * filter_labels      keep the samples whose labels match focus and not ignore.
 *                    An expression is a range of numbers, "16kb:4mb", or
 *                    regular expressions parted by commas, all of which must
 *                    match. "KEY=" in front restricts it to one key; then one
 *                    of the regular expressions must match.
 * filter_label_keys  drop the labels whose key does not match show, or matches
 *                    hide; samples stay.
 *
 * matched  bits FOCUS and IGNORE, or SHOW and HIDE; may be NULL.
 *
 * Safety:  OBJ.
 * Source:  profile.FilterSamplesByTag, FilterTagsByName,
 *          internal/driver/driver_focus.go.
 */
CPPROF_API enum cpprof_status
pprof_filter_labels(struct pprof_profile *profile, const char *focus,
                    const char *ignore, uint32_t *matched,
                    struct cpprof_error *error);
CPPROF_API enum cpprof_status
pprof_filter_label_keys(struct pprof_profile *profile, const char *show,
                        const char *hide, uint32_t *matched,
                        struct cpprof_error *error);

/*
 * Put a frame named after its labels at the root, or at the leaf, of every
 * sample, one for each key of a comma-separated list.
 *
 * unit     numbers are printed in it: "minimum", "auto", a unit; NULL: the
 *          first.
 * matched  bits FOCUS and IGNORE: some sample has a root, leaf key.
 *
 * Errors:  CPPROF_NOMEM.
 * Safety:  OBJ.
 * Source:  internal/driver/tagroot.go.
 */
CPPROF_API enum cpprof_status
pprof_add_label_frames(struct pprof_profile *profile, const char *root_keys,
                       const char *leaf_keys, const char *unit,
                       uint32_t *matched, struct cpprof_error *error);

/* ------------------------------------------------------------- prune ---- */

/*
 * Drop frames below a function.
 *
 * prune       below the caller of a function that matches drop and not keep,
 *             as whole, simplified names; frames of the root side that no
 *             other frame calls stay.
 * prune_from  below the lowest frame that matches anywhere in its name.
 *
 * Errors:  of prune, CPPROF_BAD_DATA "failed to compile regexp EXPRESSION:
 *          ...".
 * Safety:  OBJ.
 * Source:  profile.Prune, PruneFrom.
 */
CPPROF_API enum cpprof_status
pprof_prune(struct pprof_profile *profile, const char *drop, const char *keep,
            struct cpprof_error *error);
CPPROF_API enum cpprof_status
pprof_prune_from(struct pprof_profile *profile, const char *prune_from,
                 struct cpprof_error *error);

/* --------------------------------------------------------- aggregate ---- */

/* What pprof_aggregate() keeps apart. */
#define PPROF_KEEP_INLINES   1u  /* else only the outermost function */
#define PPROF_KEEP_FUNCTIONS 2u  /* else names are cleared */
#define PPROF_KEEP_FILES     4u  /* else file names are cleared */
#define PPROF_KEEP_LINES     8u  /* else lines are 0 */
#define PPROF_KEEP_COLUMNS   16u /* else columns are 0 */
#define PPROF_KEEP_ADDRESSES 32u /* else addresses are 0 */

/*
 * Forget details, so that compact() or a merge makes equal what differed only
 * in them. Samples and their number stay. The flags of mappings follow.
 *
 * keep     PPROF_KEEP_*; without lines there are no columns.
 *
 * Errors:  none.
 * Safety:  OBJ.
 * Source:  profile.Aggregate.
 */
CPPROF_API enum cpprof_status
pprof_aggregate(struct pprof_profile *profile, uint32_t keep,
                struct cpprof_error *error);

/*
 * Merge a profile with itself: equal samples become one, what no sample needs
 * goes, ids count from 1. copy leaves the original as it is and changes
 * nothing.
 *
 * Errors:  CPPROF_NOMEM.
 * Owner:   the caller frees *copy.
 * Safety:  OBJ.
 * Source:  profile.Compact, Copy.
 */
CPPROF_API enum cpprof_status
pprof_compact(struct pprof_profile *profile, struct cpprof_error *error);
CPPROF_API enum cpprof_status
pprof_copy(const struct pprof_profile *profile, struct pprof_profile **copy,
           struct cpprof_error *error);

/* ------------------------------------------------------------ labels ---- */

/*
 * Give every sample labels of one key, instead of those it may have of that
 * key, or take them away.
 *
 * set_label      one text.        remove_label      its texts.
 * set_num_label  one number.      remove_num_label  its numbers.
 * unit           of the number; NULL or "" for none.
 *
 * Errors:  CPPROF_NOMEM.
 * Safety:  OBJ.
 * Source:  profile.SetLabel, RemoveLabel, SetNumLabel, RemoveNumLabel.
 */
CPPROF_API enum cpprof_status
pprof_set_label(struct pprof_profile *profile, const char *key,
                const char *value, struct cpprof_error *error);
CPPROF_API enum cpprof_status
pprof_remove_label(struct pprof_profile *profile, const char *key,
                   struct cpprof_error *error);
CPPROF_API enum cpprof_status
pprof_set_num_label(struct pprof_profile *profile, const char *key,
                    int64_t number, const char *unit,
                    struct cpprof_error *error);
CPPROF_API enum cpprof_status
pprof_remove_num_label(struct pprof_profile *profile, const char *key,
                       struct cpprof_error *error);

/* ---------------------------------------------------- names and sums ---- */

/*
 * Set the file and the build id of the first mapping. A profile without
 * mappings gets one. NULL leaves the file, or the build id, as it is.
 *
 * Errors:  CPPROF_NOMEM.
 * Safety:  OBJ.
 */
CPPROF_API enum cpprof_status
pprof_set_binary(struct pprof_profile *profile, const char *file,
                 const char *build_id, struct cpprof_error *error);

/* Change the file of a mapping. Errors: CPPROF_INVALID (there is no such
 * mapping), CPPROF_NOMEM. Safety: OBJ. */
CPPROF_API enum cpprof_status
pprof_set_mapping_file(struct pprof_profile *profile, size_t mapping,
                       const char *file, struct cpprof_error *error);

/* The function at an address. */
struct pprof_symbol {
    uint64_t address;
    const char *name; /* as the linker knows it */
};

/*
 * Give the locations of a mapping the functions at their addresses, one line
 * without a number each, in place of what they had. The mapping has functions
 * from then on.
 *
 * symbols  sorted by address, each address once.
 *
 * Errors:  CPPROF_INVALID (there is no such mapping, or a symbol has no name),
 *          CPPROF_NOMEM. After the latter some locations may have names.
 * Safety:  OBJ.
 * Source:  internal/symbolz.symbolizeMapping.
 */
CPPROF_API enum cpprof_status
pprof_set_symbols(struct pprof_profile *profile, size_t mapping,
                  const struct pprof_symbol *symbols, size_t n,
                  struct cpprof_error *error);

/* Add a comment. Errors: CPPROF_NOMEM. Safety: OBJ. */
CPPROF_API enum cpprof_status
pprof_add_comment(struct pprof_profile *profile, const char *text,
                  struct cpprof_error *error);

/*
 * Drop the frames that the profile itself calls uninteresting: below the
 * caller of a function that matches drop_frames and not keep_frames. Frames
 * of the root side that no other frame calls stay.
 *
 * Errors:  CPPROF_BAD_DATA (not a regular expression), CPPROF_NOMEM. The
 *          profile is then unchanged.
 * Safety:  OBJ.
 * Source:  profile.RemoveUninteresting.
 */
CPPROF_API enum cpprof_status
pprof_drop_frames(struct pprof_profile *profile, struct cpprof_error *error);

/* How much of a C++ or Rust name is shown. */
enum pprof_demangle {
    PPROF_DEMANGLE_SHORT = 0, /* no parameters or template arguments */
    PPROF_DEMANGLE_TEMPLATES, /* no parameters */
    PPROF_DEMANGLE_FULL,
    PPROF_DEMANGLE_NONE, /* mangled */
};

/* pprof_demangle() flags */
#define PPROF_DEMANGLE_AGAIN 1u /* also names that are demangled */

/*
 * Demangle the names of functions: those that are the system name, or none at
 * all; with PPROF_DEMANGLE_AGAIN all that have a system name.
 *
 * Errors:  CPPROF_INVALID (no such mode or flag), CPPROF_NOMEM.
 * Safety:  OBJ.
 * Source:  internal/symbolizer.Demangle.
 */
CPPROF_API enum cpprof_status
pprof_demangle(struct pprof_profile *profile, enum pprof_demangle mode,
               uint32_t flags, struct cpprof_error *error);

/*
 * Multiply every value by one ratio; or that of sample type i by ratios[i] of
 * n_ratios. Rounds to the nearest number. Samples of which all that was
 * multiplied becomes 0 are dropped; a ratio of 1 multiplies nothing.
 *
 * Errors:  CPPROF_INVALID "mismatched scale ratios, got N, want M".
 * Safety:  OBJ.
 * Source:  profile.Scale, ScaleN.
 */
CPPROF_API void
pprof_scale(struct pprof_profile *profile, double ratio);
CPPROF_API enum cpprof_status
pprof_scale_types(struct pprof_profile *profile, const double *ratios,
                  size_t n_ratios, struct cpprof_error *error);

/*
 * Scale a profile so that each sample type adds up to what it does in base.
 *
 * Errors:  CPPROF_INVALID (sample or period types differ), CPPROF_NOMEM.
 * Safety:  OBJ.
 * Source:  profile.Normalize.
 */
CPPROF_API enum cpprof_status
pprof_normalize(struct pprof_profile *profile, const struct pprof_profile *base,
                struct cpprof_error *error);

/* ------------------------------------------------------------- merge ---- */

struct pprof_merger; /* the sum of the profiles added so far */

/*
 * Merge profiles: make a merger, add any number, finish, free.
 *
 * profile  to add: needed only during the call, and maybe changed by it, into
 *          what can be merged with the others.
 * result   filled by finish, once.
 *
 * Shape:   equal samples are one with the sum of their values, those that add
 *          up to 0 are dropped; no mapping, location or function is there
 *          twice, or without need. Ids count from 1. Sample types are those
 *          that all have, in the finest unit. Time is the earliest, duration
 *          the sum, period the largest; comments are kept once each.
 * Errors:  CPPROF_INVALID with the reference's words: types that do not go
 *          together, or none added; CPPROF_NOMEM. After a failure the merger
 *          can only be freed.
 * Owner:   the caller frees the merger, and the result.
 * Safety:  OBJ.
 * Source:  profile.Merge, profile.CompatibilizeSampleTypes,
 *          measurement.ScaleProfiles.
 */
CPPROF_API enum cpprof_status
pprof_merger_new(struct pprof_merger **merger, struct cpprof_error *error);
CPPROF_API enum cpprof_status
pprof_merger_add(struct pprof_merger *merger, struct pprof_profile *profile,
                 struct cpprof_error *error);
CPPROF_API enum cpprof_status
pprof_merger_finish(struct pprof_merger *merger, struct pprof_profile **result,
                    struct cpprof_error *error);
CPPROF_API void
pprof_merger_free(struct pprof_merger *merger);

/* Merge n profiles, which may be changed as merger_add() changes them. Errors:
 * CPPROF_INVALID "no profiles to merge", and as above. Safety: OBJ. */
CPPROF_API enum cpprof_status
pprof_merge(struct pprof_profile *const *profiles, size_t n,
            struct pprof_profile **result, struct cpprof_error *error);

#ifdef __cplusplus
}
#endif

#endif
