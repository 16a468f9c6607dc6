/* SPDX-License-Identifier: MIT */
/*
 * Writes a profile of records: stacks of this process's tables, or of those
 * that another process left, each with one or two numbers and maybe labels. The
 * small profiles share it: block, mutex, goroutine, threadcreate and those of
 * the program.
 *
 * Source: Go runtime/pprof/pprof.go (printCountProfile).
 */
#ifndef COLLECT_RECORDS_PROFILE_H
#define COLLECT_RECORDS_PROFILE_H

#include "collect/encode/builder.h"
#include "collect/encode/source.h"
#include <cpprof/profiles.h>

#include <stdbool.h>

struct cpprof__stack_record {
    int64_t values[2];
    uint32_t stack;  /* node of the tables' tree, 0: unknown */
    uint32_t labels; /* cpprof__label_set_number(), or 0 */
};

struct cpprof__records_form {
    const char *name;
    const struct cpprof__value_type *types;
    size_t n_types; /* 1 or 2 */
    struct cpprof__value_type period_type;
    int64_t period;
    /* The functions that are left out at the leaf, in both forms; NULL: none.
     */
    bool (*hides)(const char *name);
    int64_t duration_ns;                 /* 0: not said */
    const char *drop_frames;             /* or NULL */
    const struct cpprof__source *source; /* NULL: this process */
    /* Write the first lines of the text. Returns the number that all values are
     * divided by in its lines. NULL: "NAME profile: total N" and 1. */
    int64_t (*put_head)(const struct cpprof__records_form *form,
                        struct cpprof__text_profile *text,
                        const struct cpprof__stack_record *records, size_t n);
};

/*
 * Sort: the last value of the form descending, then as strings the addresses
 * and labels that the text prints, ascending. Records of the same stack and
 * labels become one.
 *
 * Returns how many are left.
 */
size_t
cpprof__records_merge(const struct cpprof__records_form *form,
                      struct cpprof__stack_record *records, size_t n);

/* Resolve the tables, merge the records, and write what options ask for. This
 * call closes the writer. The records are changed, and stay the caller's. */
enum cpprof_status
cpprof__records_write(const struct cpprof__records_form *form,
                      struct cpprof__stack_record *records, size_t n,
                      const struct cpprof_profile_options *options,
                      struct cpprof_writer writer, struct cpprof_error *error);

#endif
