/* SPDX-License-Identifier: MIT */
/*
 * The profile as data: read a pprof file, look into it, merge, filter by its
 * own rules, check it.
 *
 *     struct cpprof_pprof *p;
 *
 *     if (cpprof_pprof_read_path("cpu.pb.gz", NULL, &p, &error) == CPPROF_OK) {
 *         printf("%zu samples\n", cpprof_pprof_info(p).n_samples);
 *         cpprof_pprof_free(p);
 *     }
 *
 * A profile is a handful of flat tables that refer to each other by index, and
 * one table of strings. The numbers that a file uses as ids are kept (`id`) but
 * mean nothing inside.
 *
 * Source: github.com/google/pprof/proto/profile.proto and profile/.
 */
#ifndef CPPROF_PPROF_H
#define CPPROF_PPROF_H

#include <stddef.h>
#include <stdint.h>

#include <cpprof/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------- types ---- */

struct cpprof_pprof; /* one profile */

/* An index that points nowhere: a location without a mapping. */
#define CPPROF_PPROF_NONE UINT32_MAX

/*
 * A string is a number below info.n_strings. Equal text has the same number;
 * 0 is the empty string. cpprof_pprof_text() gives the text.
 */
typedef uint32_t cpprof_pprof_string;

/* What a value of every sample counts: "cpu" in "nanoseconds". */
struct cpprof_pprof_value_type {
    cpprof_pprof_string type;
    cpprof_pprof_string unit;
};

/* struct cpprof_pprof_mapping flags: what its locations are known to have. */
#define CPPROF_PPROF_HAS_FUNCTIONS     1u
#define CPPROF_PPROF_HAS_FILENAMES     2u
#define CPPROF_PPROF_HAS_LINE_NUMBERS  4u
#define CPPROF_PPROF_HAS_INLINE_FRAMES 8u

/* A part of a file in the memory of the process; the first is the program. */
struct cpprof_pprof_mapping {
    uint64_t id;
    uint64_t start;
    uint64_t limit; /* first address behind it */
    uint64_t offset;
    cpprof_pprof_string file;
    cpprof_pprof_string build_id;
    uint32_t flags; /* CPPROF_PPROF_HAS_* */
};

struct cpprof_pprof_function {
    uint64_t id;
    int64_t start_line; /* 0: unknown */
    cpprof_pprof_string name;
    cpprof_pprof_string system_name; /* as the linker knows it */
    cpprof_pprof_string file;
};

/* One function of a location. */
struct cpprof_pprof_line {
    int64_t line;      /* 0: unknown */
    int64_t column;    /* 0: unknown */
    uint32_t function; /* index into the functions */
};

/* struct cpprof_pprof_location flags */
#define CPPROF_PPROF_FOLDED 1u /* one of several functions at one address */

/* An instruction. Its lines are the function inlined deepest first and the
 * function that the linker knows last; none where nothing is known. */
struct cpprof_pprof_location {
    uint64_t id;
    uint64_t address;
    size_t first_line; /* index into the lines */
    uint32_t n_lines;
    uint32_t mapping; /* index into the mappings, or CPPROF_PPROF_NONE */
    uint32_t flags;   /* CPPROF_PPROF_FOLDED */
};

enum cpprof_pprof_label_kind {
    CPPROF_PPROF_LABEL_TEXT = 0, /* text */
    CPPROF_PPROF_LABEL_NUMBER,   /* num and maybe unit */
};

struct cpprof_pprof_label {
    int64_t num;
    cpprof_pprof_string key;
    cpprof_pprof_string text;
    cpprof_pprof_string unit;
    uint32_t kind; /* enum cpprof_pprof_label_kind */
};

/* A view of one sample; pointers live until the profile is changed. */
struct cpprof_pprof_sample {
    const int64_t *values;     /* info.n_sample_types of them */
    const uint32_t *locations; /* indices, leaf first */
    size_t n_locations;
    const struct cpprof_pprof_label *labels; /* texts first, sorted by key */
    size_t n_labels;
};

/* Everything that a profile has once, and how many it has of the rest. */
struct cpprof_pprof_info {
    int64_t time_ns; /* when it began, since 1970; 0: unknown */
    int64_t duration_ns;
    int64_t period;
    struct cpprof_pprof_value_type period_type;
    cpprof_pprof_string default_sample_type;
    cpprof_pprof_string drop_frames; /* regular expressions, see */
    cpprof_pprof_string keep_frames; /* cpprof_pprof_drop_frames() */
    cpprof_pprof_string doc_url;
    size_t n_sample_types;
    size_t n_samples;
    size_t n_mappings;
    size_t n_locations;
    size_t n_lines;
    size_t n_functions;
    size_t n_comments;
    size_t n_strings;
};

struct cpprof_pprof_read_options {
    size_t size;        /* sizeof (struct cpprof_pprof_read_options) */
    uint64_t max_bytes; /* unpacked, to refuse decompression bombs; more of it
                         * reads larger files; 0: 4 GiB */
};

/* ----------------------------------------------------- make and free ---- */

/*
 * Read a profile: profile.proto, gzip-compressed (one member or many) or not.
 *
 * path     a file; or
 * fd       an open descriptor, read to its end, also a pipe; stays open; or
 * data     n_bytes in memory, not needed any more after the call.
 * options  NULL for defaults.
 * profile  filled on success.
 * error    filled on failure, .offset counts unpacked bytes; may be NULL.
 *
 * Errors:  CPPROF_BAD_DATA with the reference's words: "decompressing profile:
 *          ...", "parsing profile: ...", "malformed profile: ..."; CPPROF_LIMIT
 *          (more than max_bytes), CPPROF_SYSTEM, CPPROF_NOMEM, CPPROF_INVALID.
 * Owner:   the caller frees *profile.
 * Safety:  MT. Not AS.
 */
CPPROF_API enum cpprof_status
cpprof_pprof_read_path(const char *path,
                       const struct cpprof_pprof_read_options *options,
                       struct cpprof_pprof **profile,
                       struct cpprof_error *error);
CPPROF_API enum cpprof_status
cpprof_pprof_read_fd(int fd, const struct cpprof_pprof_read_options *options,
                     struct cpprof_pprof **profile, struct cpprof_error *error);
CPPROF_API enum cpprof_status
cpprof_pprof_read_data(const void *data, size_t n_bytes,
                       const struct cpprof_pprof_read_options *options,
                       struct cpprof_pprof **profile,
                       struct cpprof_error *error);

/* Free a profile; NULL is fine. Safety: OBJ. */
CPPROF_API void
cpprof_pprof_free(struct cpprof_pprof *profile);

/* ----------------------------------------------------------- inspect ---- */

/*
 * Look into a profile. The tables are arrays of info.n_... elements; a string
 * or sample number must be below its count.
 *
 * Owner:   the profile's; valid until it is changed or freed. Text is
 *          terminated; n_bytes, which may be NULL, tells its length, for text
 *          with zero bytes in it.
 * Safety:  OBJ.
 */
CPPROF_API struct cpprof_pprof_info
cpprof_pprof_info(const struct cpprof_pprof *profile);
CPPROF_API const char *
cpprof_pprof_text(const struct cpprof_pprof *profile,
                  cpprof_pprof_string string, size_t *n_bytes);
CPPROF_API const struct cpprof_pprof_value_type *
cpprof_pprof_sample_types(const struct cpprof_pprof *profile);
CPPROF_API const struct cpprof_pprof_mapping *
cpprof_pprof_mappings(const struct cpprof_pprof *profile);
CPPROF_API const struct cpprof_pprof_location *
cpprof_pprof_locations(const struct cpprof_pprof *profile);
CPPROF_API const struct cpprof_pprof_line *
cpprof_pprof_lines(const struct cpprof_pprof *profile);
CPPROF_API const struct cpprof_pprof_function *
cpprof_pprof_functions(const struct cpprof_pprof *profile);
CPPROF_API const cpprof_pprof_string *
cpprof_pprof_comments(const struct cpprof_pprof *profile);
CPPROF_API struct cpprof_pprof_sample
cpprof_pprof_sample(const struct cpprof_pprof *profile, size_t sample);

/*
 * Check every invariant of a profile: ids are unique and not 0, every index
 * is inside its table.
 *
 * Errors:  CPPROF_BAD_DATA with the words of the reference's CheckValid;
 *          CPPROF_NOMEM.
 * Safety:  OBJ.
 */
CPPROF_API enum cpprof_status
cpprof_pprof_check(const struct cpprof_pprof *profile,
                   struct cpprof_error *error);

/* ------------------------------------------------------------ change ---- */

/*
 * Take the given file, or build id, for that of the first mapping; makes a
 * mapping where there is none. NULL leaves it as it is.
 *
 * Errors:  CPPROF_NOMEM.
 * Safety:  OBJ.
 */
CPPROF_API enum cpprof_status
cpprof_pprof_set_binary(struct cpprof_pprof *profile, const char *file,
                        const char *build_id, struct cpprof_error *error);

/* Add a comment. Errors: CPPROF_NOMEM. Safety: OBJ. */
CPPROF_API enum cpprof_status
cpprof_pprof_add_comment(struct cpprof_pprof *profile, const char *text,
                         struct cpprof_error *error);

/*
 * Drop the frames that the profile itself calls uninteresting: below the
 * caller of a function that matches drop_frames and not keep_frames. Frames
 * of the root side that no other frame calls stay.
 *
 * Errors:  CPPROF_BAD_DATA (not a regular expression), CPPROF_LIMIT (matching
 *          takes too long), CPPROF_NOMEM. The profile is then unchanged.
 * Safety:  OBJ.
 * Source:  profile.RemoveUninteresting.
 */
CPPROF_API enum cpprof_status
cpprof_pprof_drop_frames(struct cpprof_pprof *profile,
                         struct cpprof_error *error);

/* How much of a C++ or Rust name is shown. */
enum cpprof_pprof_demangle {
    CPPROF_PPROF_DEMANGLE_SHORT = 0, /* no parameters or template arguments */
    CPPROF_PPROF_DEMANGLE_TEMPLATES, /* no parameters */
    CPPROF_PPROF_DEMANGLE_FULL,
    CPPROF_PPROF_DEMANGLE_NONE, /* mangled */
};

/* cpprof_pprof_demangle() flags */
#define CPPROF_PPROF_DEMANGLE_AGAIN 1u /* also names that are demangled */

/*
 * Demangle the names of functions: those that are the system name, or none at
 * all; with CPPROF_PPROF_DEMANGLE_AGAIN all that have a system name.
 *
 * Errors:  CPPROF_NOMEM.
 * Safety:  OBJ.
 * Source:  internal/symbolizer.Demangle.
 */
CPPROF_API enum cpprof_status
cpprof_pprof_demangle(struct cpprof_pprof *profile,
                      enum cpprof_pprof_demangle mode, uint32_t flags,
                      struct cpprof_error *error);

/*
 * Multiply every value, that of sample type i by ratios[i], rounding to the
 * nearest number. Samples of which all that was multiplied becomes 0 are
 * dropped.
 *
 * Safety:  OBJ.
 * Source:  profile.ScaleN.
 */
CPPROF_API void
cpprof_pprof_scale(struct cpprof_pprof *profile, const double *ratios);

/* The same with -1 for all. Errors: CPPROF_NOMEM. Safety: OBJ. */
CPPROF_API enum cpprof_status
cpprof_pprof_negate(struct cpprof_pprof *profile, struct cpprof_error *error);

/*
 * Scale a profile so that each sample type adds up to what it does in base.
 *
 * Errors:  CPPROF_INVALID (sample or period types differ), CPPROF_NOMEM.
 * Safety:  OBJ.
 * Source:  profile.Normalize.
 */
CPPROF_API enum cpprof_status
cpprof_pprof_normalize(struct cpprof_pprof *profile,
                       const struct cpprof_pprof *base,
                       struct cpprof_error *error);

/* Give every sample one label, instead of those it may have of that key.
 * Errors: CPPROF_NOMEM. Safety: OBJ. */
CPPROF_API enum cpprof_status
cpprof_pprof_set_label(struct cpprof_pprof *profile, const char *key,
                       const char *value, struct cpprof_error *error);

/* ------------------------------------------------------------- merge ---- */

struct cpprof_pprof_merger; /* the sum of the profiles added so far */

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
cpprof_pprof_merger_make(struct cpprof_pprof_merger **merger,
                         struct cpprof_error *error);
CPPROF_API enum cpprof_status
cpprof_pprof_merger_add(struct cpprof_pprof_merger *merger,
                        struct cpprof_pprof *profile,
                        struct cpprof_error *error);
CPPROF_API enum cpprof_status
cpprof_pprof_merger_finish(struct cpprof_pprof_merger *merger,
                           struct cpprof_pprof **result,
                           struct cpprof_error *error);
CPPROF_API void
cpprof_pprof_merger_free(struct cpprof_pprof_merger *merger);

#ifdef __cplusplus
}
#endif

#endif
