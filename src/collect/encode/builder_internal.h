/* SPDX-License-Identifier: MIT */
/*
 * What the files of the builder share: the tables, and the stream they are
 * written to. See builder.h for what it does.
 *
 * Invariants: the tables only grow, until they are forgotten; ids in the file
 * are index + 1 + what was forgotten before, and a function or a location is in
 * the table only if its message is in the stream. Strings are the exception:
 * they are written last, or when they are forgotten, because samples and
 * locations refer to them by index all the way through. Once `error` has a
 * status nothing is added and nothing is written.
 */
#ifndef COLLECT_BUILDER_INTERNAL_H
#define COLLECT_BUILDER_INTERNAL_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/hash.h"
#include "collect/encode/builder.h"

#include <stdbool.h>

/*
 * Raw bytes that make one gzip member. A profile below this is one member,
 * because some readers know only the first one of a file. The bytes are held
 * in memory until they are compressed, which takes as much again; a profile of
 * more is several members. For the compression alone 256 KiB would do.
 */
#define CPPROF__MEMBER_BYTES ((size_t)16 << 20)

/* libdeflate's level. 6 takes 1.6 times as long (115 instead of 71 ms for
 * 8 MB) and saves 1 to 7 %. */
#define CPPROF__GZIP_LEVEL 1

/* Inlined frames of one location; deeper inlining is cut at the outer end. */
#define CPPROF__LINES_MAX 256

#define CPPROF__SAMPLE_TYPES_MAX 8

/* profile.proto, message Profile */
enum cpprof__profile_field {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING_TABLE = 6,
    PROFILE_DROP_FRAMES = 7,
    PROFILE_KEEP_FRAMES = 8,
    PROFILE_TIME_NANOS = 9,
    PROFILE_DURATION_NANOS = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_SAMPLE_TYPE = 14,
};

/* The key of a table's entry; without padding, so that keys are compared as
 * bytes. */
struct cpprof__builder_function {
    uint32_t name, system_name, file; /* strings */
    uint32_t zero;
    int64_t start_line;
};

struct cpprof__builder_location {
    uint64_t pc;
    uint32_t mapping;
    uint32_t function; /* id, of code that is known by when it ran; else 0 */
};

struct cpprof__builder_mapping_key {
    uint64_t start, limit, offset;
    uint32_t path, build_id; /* strings */
};

struct cpprof__builder_string {
    const char *text; /* in the arena, terminated */
    size_t n;
};

struct cpprof__builder_known_mapping {
    struct cpprof__builder_mapping_key key; /* first: it is looked up by it */
    size_t symbolizer_index; /* SIZE_MAX: no frame of it can be resolved */
    /* True if it is true of every location written for it. */
    bool has_functions;
    bool has_filenames;
    bool has_line_numbers;
    bool has_inline_frames;
    bool used; /* a location of it was written */
    bool is_script;
};

/* The most interpreters whose mapping is remembered. One more may get several
 * mappings, each time that strings are forgotten. */
#define CPPROF__SCRIPT_MAPPINGS 8

/* A cache in front of a table; it grows with the table. */
struct cpprof__builder_recent {
    void *slots;
    size_t n; /* 0 or a power of two */
};

struct cpprof__builder {
    struct cpprof_writer writer;
    const struct cpprof__symbolizer_ops *ops; /* NULL: addresses only */
    struct cpprof__symbolizer *symbolizer;
    struct cpprof_error error; /* the first failure; sticky */

    struct cpprof__buffer out;    /* messages not yet compressed */
    struct cpprof__buffer packed; /* one gzip member; used again and again */
    size_t member_bytes;          /* CPPROF__MEMBER_BYTES; tests take less */

    struct cpprof__arena arena; /* text of the strings */
    struct cpprof__table strings;
    struct cpprof__table functions;
    struct cpprof__table locations;
    struct cpprof__table mappings;

    const struct cpprof__scripts *scripts; /* or NULL */
    struct {
        const char *text;
        uint32_t number;
    } script_mappings[CPPROF__SCRIPT_MAPPINGS];
    size_t n_script_mappings;

    /* Caches of the last locations and functions: a hit touches one cache line,
     * a look-up in the table two. The hash is of the address, or of the pointer
     * to the name, which lives as long as the symbolizer. They have four slots
     * for each entry, or none if there is no memory. */
    struct cpprof__builder_recent recent_locations;
    struct cpprof__builder_recent recent_functions;

    struct cpprof__buffer comments; /* strings, uint32_t */
    uint32_t default_sample_type, drop_frames, keep_frames;
    size_t n_values;

    /* Entries that were written and then forgotten. */
    struct {
        uint32_t strings;
        uint64_t functions, locations;
    } n_forgotten;

    /* Buffers for one sample and one location while they are made. */
    struct cpprof__buffer location_ids; /* uint64_t */
    struct cpprof__frame lines[CPPROF__LINES_MAX];
    uint64_t function_ids[CPPROF__LINES_MAX];
};

/* builder_tables.c */

/* Index of text in the string table, 0 for "" and NULL. */
uint32_t
cpprof__builder_string(struct cpprof__builder *b, const char *text);
/* Frames whose locations are about to be asked for. */
void
cpprof__builder_prefetch(const struct cpprof__builder *b,
                         const struct cpprof__builder_frame *stack, size_t n);
/* Id of the location of frame, which is written if it is new; 0 when failed. */
uint64_t
cpprof__builder_location_id(struct cpprof__builder *b,
                            struct cpprof__builder_frame frame);

/* Make all tables empty except that of mappings. What was in them keeps its
 * number. The strings must have been written before. */
void
cpprof__builder_clear_tables(struct cpprof__builder *b);

/* builder.c */

static inline bool
cpprof__builder_failed(const struct cpprof__builder *b)
{
    return b->error.status != CPPROF_OK;
}

static inline struct cpprof__builder_known_mapping *
cpprof__builder_mapping_at(const struct cpprof__builder *b, size_t index)
{
    return (struct cpprof__builder_known_mapping *)b->mappings.entries.data +
           index;
}

#endif
