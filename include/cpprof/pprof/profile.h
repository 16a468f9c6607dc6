/* SPDX-License-Identifier: MIT */
/*
 * The profile as data: read any file that pprof reads, look into it, check it,
 * write it. <cpprof/pprof/change.h> filters, merges and changes.
 *
 *     struct pprof_profile *p;
 *
 *     if (pprof_read_path("cpu.pb.gz", NULL, &p, &error) == CPPROF_OK) {
 *         printf("%zu samples\n", pprof_sample_count(p));
 *         pprof_free(p);
 *     }
 *
 * A profile is a handful of flat tables that refer to each other by index, and
 * one table of strings. The numbers that a file uses as ids are kept (`id`) but
 * mean nothing inside. (The names say pprof, the format; cpprof_profile_...
 * are the profiles that a running program keeps.)
 *
 * Source: github.com/google/pprof/proto/profile.proto and profile/.
 */
#ifndef PPROF_PROFILE_H
#define PPROF_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cpprof/status.h>
#include <cpprof/writer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------- types ---- */

struct pprof_profile; /* one profile */

/* An index that points nowhere: a location without a mapping. */
#define PPROF_NONE UINT32_MAX

/*
 * A string is a number below pprof_string_count(). Equal text has the same
 * number; 0 is the empty string. pprof_text() gives the text.
 */
typedef uint32_t pprof_string;

/* What a value of every sample counts: "cpu" in "nanoseconds". */
struct pprof_value_type {
    pprof_string type;
    pprof_string unit;
};

/* struct pprof_mapping flags: what its locations are known to have. */
#define PPROF_HAS_FUNCTIONS     1u
#define PPROF_HAS_FILENAMES     2u
#define PPROF_HAS_LINE_NUMBERS  4u
#define PPROF_HAS_INLINE_FRAMES 8u

/* A part of a file in the memory of the process; the first is the program. */
struct pprof_mapping {
    uint64_t id;
    uint64_t start;
    uint64_t limit; /* first address behind it */
    uint64_t offset;
    pprof_string file;
    pprof_string build_id;
    uint32_t flags; /* PPROF_HAS_* */
};

struct pprof_function {
    uint64_t id;
    int64_t start_line; /* 0: unknown */
    pprof_string name;
    pprof_string system_name; /* as the linker knows it */
    pprof_string file;
};

/* One function of a location. */
struct pprof_line {
    int64_t line;      /* 0: unknown */
    int64_t column;    /* 0: unknown */
    uint32_t function; /* index into the functions */
};

/* struct pprof_location flags */
#define PPROF_FOLDED 1u /* one of several functions at one address */

/* An instruction. Its lines are the function inlined deepest first and the
 * function that the linker knows last; none where nothing is known. */
struct pprof_location {
    uint64_t id;
    uint64_t address;
    size_t first_line; /* index into the lines */
    uint32_t n_lines;
    uint32_t mapping; /* index into the mappings, or PPROF_NONE */
    uint32_t flags;   /* PPROF_FOLDED */
};

enum pprof_label_kind {
    PPROF_LABEL_TEXT = 0, /* text */
    PPROF_LABEL_NUMBER,   /* num and maybe unit */
};

struct pprof_label {
    int64_t num;
    pprof_string key;
    pprof_string text;
    pprof_string unit;
    uint32_t kind; /* enum pprof_label_kind */
};

/* A view of one sample; pointers live until the profile is changed. */
struct pprof_sample {
    size_t size;               /* sizeof (struct pprof_sample) */
    const int64_t *values;     /* one for each sample type */
    const uint32_t *locations; /* indices, leaf first */
    size_t n_locations;
    const struct pprof_label *labels; /* texts first, sorted by key */
    size_t n_labels;
};

/* Everything that a profile has once. */
struct pprof_info {
    size_t size;     /* sizeof (struct pprof_info) */
    int64_t time_ns; /* when it began, since 1970; 0: unknown */
    int64_t duration_ns;
    int64_t period;
    struct pprof_value_type period_type;
    pprof_string default_sample_type;
    pprof_string drop_frames; /* regular expressions, see */
    pprof_string keep_frames; /* pprof_drop_frames() */
    pprof_string doc_url;
};

struct pprof_read_options {
    size_t size;        /* sizeof (struct pprof_read_options) */
    uint64_t max_bytes; /* unpacked, to refuse decompression bombs; more of it
                         * reads larger files; 0: 4 GiB, and 1 GiB of a pipe or
                         * a device, before it is unpacked */
};

/* ----------------------------------------------------- make and free ---- */

/*
 * Read a profile: profile.proto, gzip-compressed (one member or many) or not;
 * a ProfilesData of OTLP, compressed or not;
 * the formats that came before it: CPU profiles in binary (gperftools, Go to
 * 1.8, Java), heap, growth, fragmentation, contention, thread and count
 * profiles as text; the text of `perf script`; collapsed stacks.
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
pprof_read_path(const char *path, const struct pprof_read_options *options,
                struct pprof_profile **profile, struct cpprof_error *error);
CPPROF_API enum cpprof_status
pprof_read_fd(int fd, const struct pprof_read_options *options,
              struct pprof_profile **profile, struct cpprof_error *error);
CPPROF_API enum cpprof_status
pprof_read_data(const void *data, size_t n_bytes,
                const struct pprof_read_options *options,
                struct pprof_profile **profile, struct cpprof_error *error);

/* Free a profile; NULL is fine. Safety: OBJ. */
CPPROF_API void
pprof_free(struct pprof_profile *profile);

/* ----------------------------------------------------------- inspect ---- */

/*
 * Look into a profile. The tables are arrays of pprof_..._count() elements. The
 * text of a string that is not there is "", and a sample that is not there has
 * no locations and no labels, and NULL for its values. The caller sets the size
 * of a struct that is filled; what only a newer header has is then zero.
 *
 * Owner:   the profile's; valid until it is changed or freed. Text is
 *          terminated; n_bytes, which may be NULL, tells its length, for text
 *          with zero bytes in it.
 * Safety:  MT, as long as nobody changes the profile.
 */
CPPROF_API void
pprof_get_info(const struct pprof_profile *profile, struct pprof_info *info);
CPPROF_API size_t
pprof_sample_type_count(const struct pprof_profile *profile);
CPPROF_API size_t
pprof_sample_count(const struct pprof_profile *profile);
CPPROF_API size_t
pprof_mapping_count(const struct pprof_profile *profile);
CPPROF_API size_t
pprof_location_count(const struct pprof_profile *profile);
CPPROF_API size_t
pprof_line_count(const struct pprof_profile *profile);
CPPROF_API size_t
pprof_function_count(const struct pprof_profile *profile);
CPPROF_API size_t
pprof_comment_count(const struct pprof_profile *profile);
CPPROF_API size_t
pprof_string_count(const struct pprof_profile *profile);
CPPROF_API const char *
pprof_text(const struct pprof_profile *profile, pprof_string string,
           size_t *n_bytes);
CPPROF_API const struct pprof_value_type *
pprof_sample_types(const struct pprof_profile *profile);
CPPROF_API const struct pprof_mapping *
pprof_mappings(const struct pprof_profile *profile);
CPPROF_API const struct pprof_location *
pprof_locations(const struct pprof_profile *profile);
CPPROF_API const struct pprof_line *
pprof_lines(const struct pprof_profile *profile);
CPPROF_API const struct pprof_function *
pprof_functions(const struct pprof_profile *profile);
CPPROF_API const pprof_string *
pprof_comments(const struct pprof_profile *profile);
CPPROF_API void
pprof_get_sample(const struct pprof_profile *profile, size_t index,
                 struct pprof_sample *sample);

/*
 * What can be said of a profile as a whole, or of one of its parts.
 *
 * has_functions       the mappings of all locations say that they have them.
 * has_file_lines      they say so of files and of line numbers.
 * is_unsymbolizable   the mapping is no file with symbols: [vdso], //anon, ...,
 *                     or there is none: PPROF_NONE.
 *
 * Safety:  MT, as long as nobody changes the profile.
 * Source:  profile.HasFunctions, HasFileLines, Mapping.Unsymbolizable.
 */
CPPROF_API bool
pprof_has_functions(const struct pprof_profile *profile);
CPPROF_API bool
pprof_has_file_lines(const struct pprof_profile *profile);
CPPROF_API bool
pprof_is_unsymbolizable(const struct pprof_profile *profile, size_t mapping);

/*
 * The index of a sample type.
 *
 * name     a number, the name of a type, or with "inuse_" in front of that;
 *          NULL or "": the profile's default, else the last.
 *
 * Errors:  CPPROF_INVALID "sample_index X is outside the range [0..N]",
 *          "sample_index X must be one of: [...]"; CPPROF_BAD_DATA: the
 *          profile has no sample types.
 * Safety:  MT, as long as nobody changes the profile.
 * Source:  profile.SampleIndexByName.
 */
CPPROF_API enum cpprof_status
pprof_find_sample_type(const struct pprof_profile *profile, const char *name,
                       size_t *index, struct cpprof_error *error);

/*
 * Questions about the labels of a sample.
 *
 * has_label       is there a text label of that key and value?
 * is_diff_base    does it come from the base of a comparison: has it the label
 *                 "pprof::base" = "true"?
 *
 * Safety:  MT, as long as nobody changes the profile.
 * Source:  Sample.HasLabel, Sample.DiffBaseSample.
 */
CPPROF_API bool
pprof_has_label(const struct pprof_profile *profile, size_t sample,
                const char *key, const char *value);
CPPROF_API bool
pprof_is_diff_base(const struct pprof_profile *profile, size_t sample);

/*
 * The unit of the numbers of a label key: the first one that a sample gives,
 * else "bytes" for "alignment" and "request", else the key itself.
 *
 * n_others  how many other units samples give, which are ignored, at most
 *           PPROF_MAX_UNITS - 1; may be NULL.
 *
 * Owner:   the profile's or the caller's key; NULL when no sample has a number
 *          of that key.
 * Safety:  MT, as long as nobody changes the profile.
 * Source:  profile.NumLabelUnits.
 */
#define PPROF_MAX_UNITS 64
CPPROF_API const char *
pprof_label_unit(const struct pprof_profile *profile, const char *key,
                 size_t *n_others);

/*
 * Check every invariant of a profile: ids are unique and not 0, every index
 * is inside its table, tables, strings and labels lie as they should.
 *
 * Errors:  CPPROF_BAD_DATA "malformed profile: ..." with the words of the
 *          reference's CheckValid, where it has some; names are checked, too;
 *          CPPROF_NOMEM.
 * Safety:  MT, as long as nobody changes the profile.
 */
CPPROF_API enum cpprof_status
pprof_check(const struct pprof_profile *profile, struct cpprof_error *error);

/* ------------------------------------------------------------- write ---- */

/* How a profile is written. */
enum pprof_format {
    PPROF_FORMAT_GZIP = 0,    /* profile.proto, compressed */
    PPROF_FORMAT_PLAIN,       /* profile.proto */
    PPROF_FORMAT_TEXT,        /* all of it to be read: Profile.String() */
    PPROF_FORMAT_COLLAPSED,   /* a line per stack: "root;...;leaf value" */
    PPROF_FORMAT_PERF_SCRIPT, /* as `perf script` prints call chains */
    PPROF_FORMAT_OTLP, /* OpenTelemetry: ProfilesData of OTLP 1.10, which is a
                        * message of ExportProfilesServiceRequest, too */
};

struct pprof_write_options {
    size_t size;          /* sizeof (struct pprof_write_options) */
    int32_t level;        /* GZIP: 1 (fastest) to 12 (smallest); 0: 1, of
                           * which 12 saves a fourteenth in 20 times the
                           * time */
    size_t sample_index;  /* COLLAPSED, PERF_SCRIPT: the sample type, or
                           * SIZE_MAX for the profile's default */
    const char *resource; /* OTLP: whose profile it is, "key=value,key=value"
                           * as OTEL_RESOURCE_ATTRIBUTES has it; NULL: nothing
                           * but the name of the program */
};

/*
 * Write a profile.
 *
 * format   one of the above.
 * options  NULL for defaults.
 * writer   receives the bytes.
 * error    filled on failure; may be NULL.
 *
 * Shape:   GZIP, PLAIN: strings in the order of first use, ids as they are in
 *          the profile; equal profiles give equal bytes, which are those of
 *          Go's writer. GZIP: one gzip member, or one for every 32 MB of a
 *          larger profile, so that memory is bounded. COLLAPSED: inlined
 *          functions are frames; equal stacks are one line, in the order of
 *          first appearance; labels are left out. OTLP: docs/convert.md;
 *          the files of mappings are opened for their hashes.
 * Units:   of the sample type.
 * Errors:  CPPROF_BAD_DATA (an invariant of pprof_check() is broken;
 *          COLLAPSED, PERF_SCRIPT: the profile has no sample types),
 *          CPPROF_INVALID (an option), CPPROF_SYSTEM (a write failed),
 *          CPPROF_NOMEM.
 * Owner:   the writer is closed by this call, whatever happens.
 * Safety:  MT, as long as nobody changes the profile. TEXT prints a time of day
 *          in the zone that tzset(3) read last.
 * Source:  profile.Write, WriteUncompressed, String.
 */
CPPROF_API enum cpprof_status
pprof_write(const struct pprof_profile *profile,
            const struct cpprof_writer *writer, enum pprof_format format,
            const struct pprof_write_options *options,
            struct cpprof_error *error);

/* pprof_write() to the file at path, in one call: with a writer of
 * cpprof_writer_to_path(), whose errors come too. Safety: MT. Not AS. */
CPPROF_API enum cpprof_status
pprof_write_to_path(const struct pprof_profile *profile, const char *path,
                    enum pprof_format format,
                    const struct pprof_write_options *options,
                    struct cpprof_error *error);

#ifdef __cplusplus
}
#endif

#endif
