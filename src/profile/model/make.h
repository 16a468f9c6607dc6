/* SPDX-License-Identifier: MIT */
/*
 * Making a profile part by part, for formats that have no tables of their own:
 * equal functions and locations become one. Failure is sticky: add without
 * checking, look at `failed` once at the end.
 */
#ifndef PROFILE_MAKE_H
#define PROFILE_MAKE_H

#include "profile/model/model.h"

struct cpprof__maker {
    struct pprof_profile *p; /* the caller's */
    bool failed;             /* out of memory, or too many of something */
    struct cpprof__index functions; /* by name, system name and file */
    struct cpprof__index locations; /* by mapping, address, function, line */
    CPPROF__ARRAY(struct pprof_label) labels; /* of the next sample */
};

/* Frees what is the maker's; the profile stays. */
void
cpprof__maker_free(struct cpprof__maker *m);

/* The number of a text; 0 when it failed. */
uint32_t
cpprof__make_string(struct cpprof__maker *m, const char *text, size_t n);
uint32_t
cpprof__make_text(struct cpprof__maker *m, const char *text);

void
cpprof__make_sample_type(struct cpprof__maker *m, const char *type,
                         const char *unit);
void
cpprof__make_period(struct cpprof__maker *m, const char *type, const char *unit,
                    int64_t period);

/* Strings are numbers of p's strings. Returns the index. */
uint32_t
cpprof__make_mapping(struct cpprof__maker *m, uint64_t start, uint64_t limit,
                     uint64_t offset, uint32_t file, uint32_t build_id);
uint32_t
cpprof__make_function(struct cpprof__maker *m, uint32_t name,
                      uint32_t system_name, uint32_t file);

/*
 * The location of these properties, with one line when function is not
 * PPROF_NONE, else with none; made where there is none yet.
 */
uint32_t
cpprof__make_location(struct cpprof__maker *m, uint32_t mapping,
                      uint64_t address, uint32_t function, int64_t line);

/* Append a line. The lines of a location lie side by side. */
void
cpprof__make_line(struct cpprof__maker *m, struct pprof_line line);

/* A label of the next sample. */
void
cpprof__make_label(struct cpprof__maker *m, uint32_t key, uint32_t text);
void
cpprof__make_number(struct cpprof__maker *m, uint32_t key, int64_t num,
                    uint32_t unit);

/* n frames, leaf first, and a value for each sample type. */
void
cpprof__make_sample(struct cpprof__maker *m, const uint32_t *locations,
                    size_t n, const int64_t *values);

#endif
