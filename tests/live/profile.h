/* SPDX-License-Identifier: MIT */
/*
 * A profile as a test looks at it: decoded straight from profile.proto, with
 * every rule of the format checked on the way, so that a file which can be read
 * here is valid. Independent of the project's own decoder on purpose.
 *
 * Source: github.com/google/pprof/proto/profile.proto; CheckValid of
 * github.com/google/pprof/profile/profile.go.
 */
#ifndef LIVE_PROFILE_H
#define LIVE_PROFILE_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One line of a location; an inlined call has several per location. */
struct frame {
    uint64_t location;  /* id */
    uint64_t address;   /* of the location */
    size_t mapping;     /* index, or NO_MAPPING */
    const char *name;   /* "" when not symbolized */
    const char *system; /* system name */
    const char *file;
    int64_t start_line;
    int64_t line;
};
#define NO_MAPPING SIZE_MAX

struct label {
    const char *key;
    const char *text; /* "" for a number */
    int64_t number;
};

struct sample {
    int64_t count;
    int64_t cpu_ns; /* the second of several values, whatever it is */
    size_t n_frames;
    struct frame *frames; /* leaf first, inlined ones expanded */
    size_t n_labels;
    struct label *labels;
};

struct mapping {
    uint64_t start, limit, offset;
    const char *file;
    const char *build_id;
    bool has_functions, has_filenames, has_line_numbers, has_inline_frames;
};

struct value_type {
    const char *type;
    const char *unit;
};

struct profile {
    size_t n_samples;
    struct sample *samples;
    size_t n_mappings;
    struct mapping *mappings;
    size_t n_comments;
    const char **comments;
    size_t n_types;
    struct value_type types[8];
    struct value_type period_type;
    int64_t period;
    int64_t time_ns;
    int64_t duration_ns;
    size_t n_locations;
    struct cpprof__arena arena;
    struct profile *joined; /* whose samples are here, too */
};

/*
 * Decode; NULL with one line in why (of why_size bytes) when the file cannot
 * be read or breaks a rule. profile_load() bails out instead. unpack takes the
 * bytes of a file, decode those that are unpacked already.
 */
struct profile *
profile_read(const char *path, char *why, size_t why_size);
struct profile *
profile_unpack(const void *packed, size_t n, char *why, size_t why_size);
struct profile *
profile_decode(const void *data, size_t n, char *why, size_t why_size);
struct profile *
profile_load(const char *path);
void
profile_free(struct profile *p);

/* Give p the samples of another profile of the same process, too, which lives
 * as long as p. All else is that of p, but the duration is that of both. */
void
profile_join(struct profile *p, struct profile *more);

/* Sums over all samples. */
int64_t
profile_cpu_ns(const struct profile *p);
int64_t
profile_count(const struct profile *p);

/* CPU time of the samples in whose stack a function of this name is: anywhere,
 * as the leaf, as the outermost frame. C++ names match up to their "(". */
int64_t
profile_cpu_in(const struct profile *p, const char *name);
int64_t
profile_cpu_leaf(const struct profile *p, const char *name);
int64_t
profile_cpu_root(const struct profile *p, const char *name);

/*
 * CPU time of samples whose stack has these functions next to each other,
 * callee first, separated by ';'. "..." stands for any frames between.
 */
int64_t
profile_cpu_stack(const struct profile *p, const char *stack);
bool
stack_matches(const struct sample *s, const char *stack);

/* Does the name of a frame mean this function? */
bool
frame_is(const struct frame *f, const char *name);

/* CPU time of the samples with this label. */
int64_t
profile_cpu_labelled(const struct profile *p, const char *key,
                     const char *text);

/* The first comment that contains part, or NULL. */
const char *
profile_comment(const struct profile *p, const char *part);

/* Print the heaviest stacks as diagnostics: of all, or with this function. */
void
profile_note(const struct profile *p, size_t n);
void
profile_note_in(const struct profile *p, const char *name, size_t n);

#endif
