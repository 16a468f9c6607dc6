/* SPDX-License-Identifier: MIT */
/*
 * Custom profiles: values that a program counts itself, each with the stack
 * that added it. A value is a pointer, which is not followed, or some bytes; a
 * pointer never equals bytes.
 *
 * The values are in several hash tables of 32 bytes an entry. Each has its own
 * lock, so that threads rarely meet and a table that grows delays few. All are
 * locked while a profile copies the values.
 */
#ifndef COLLECT_CUSTOM_H
#define COLLECT_CUSTOM_H

#include "collect/encode/records_profile.h"
#include <cpprof/profiles.h>

#include <stdbool.h>

struct cpprof__custom;

struct cpprof__custom_value {
    const void *value;
    size_t n_bytes;
    bool is_bytes; /* n_bytes at value; else the pointer */
};

/* Types: {NAME, "count"}, and for a weighted one what it weighs. Their texts
 * live as long as the profile. NULL: no memory. Only a profile without values
 * by bytes may be freed; one that has a name never is. */
struct cpprof__custom *
cpprof__custom_make(const struct cpprof__value_type *types, size_t n_types);
void
cpprof__custom_free(struct cpprof__custom *custom);

/* That it will be added. */
void
cpprof__custom_prefetch(struct cpprof__custom *custom,
                        const struct cpprof__custom_value *value);

/*
 * record: its stack, 0 when there was no room for it; its labels, 0 for none;
 * values 1 and the weight.
 *
 * Errors: CPPROF_NOMEM, CPPROF_INVALID ("pprof: Profile.Add of duplicate
 * value", "pprof: the weights of all values would be more than 2^62").
 */
enum cpprof_status
cpprof__custom_add(struct cpprof__custom *custom,
                   const struct cpprof__custom_value *value,
                   const struct cpprof__stack_record *record,
                   struct cpprof_error *error);

void
cpprof__custom_remove(struct cpprof__custom *custom,
                      const struct cpprof__custom_value *value);

size_t
cpprof__custom_count(const struct cpprof__custom *custom);

/* The values that are there now, a record for each, and the form to write them
 * in. Errors: CPPROF_NOMEM. Owner: *records is the caller's, from malloc. */
enum cpprof_status
cpprof__custom_records(struct cpprof__custom *custom,
                       struct cpprof__stack_record **records, size_t *n,
                       struct cpprof_error *error);
struct cpprof__records_form
cpprof__custom_form(const struct cpprof__custom *custom);

/* As cpprof_profile_write(), with options of full size. */
enum cpprof_status
cpprof__custom_write(struct cpprof__custom *custom,
                     const struct cpprof_profile_options *options,
                     struct cpprof_writer writer, struct cpprof_error *error);

void
cpprof__custom_in_child(struct cpprof__custom *custom);

#endif
