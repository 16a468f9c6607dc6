/* SPDX-License-Identifier: MIT */
/*
 * The profiles of this process by name. Each built-in profile defines one
 * struct cpprof__builtin; each profile of the program is a struct
 * cpprof__custom (custom.h). The public calls of <cpprof/profiles.h> find the
 * one or the other behind a struct cpprof_profile.
 */
#ifndef COLLECT_REGISTRY_H
#define COLLECT_REGISTRY_H

#include "collect/encode/records_profile.h"
#include "collect/registry/records.h"
#include <cpprof/profiles.h>

/* A built-in profile. Each function is given the profile that it is called
 * for. */
struct cpprof__builtin {
    const char *name;

    /* As Go's Profile.Count: threads, buckets. */
    size_t (*count)(const struct cpprof__builtin *self);

    /*
     * options have their full size and are in range, and the writer has a write
     * function. This call closes the writer. The thread is exempt (exempt.h).
     * debug: 0, 1, or more, which is for most profiles the same as 1. NULL:
     * .records are written in .form.
     */
    enum cpprof_status (*write)(const struct cpprof__builtin *self,
                                struct cpprof_writer writer,
                                const struct cpprof_profile_options *options,
                                struct cpprof_error *error);

    /* Add all records (records.h). */
    enum cpprof_status (*all_records)(const struct cpprof__builtin *self,
                                      struct cpprof__records *all_records,
                                      struct cpprof_error *error);

    /* The records that there are now and their form, in any order, from malloc.
     * The calling thread's own stack begins at the return address above. NULL:
     * a heap, which has records of its own. */
    const struct cpprof__records_form *form;
    enum cpprof_status (*records)(const struct cpprof__builtin *self,
                                  const struct cpprof_profile_options *options,
                                  uintptr_t above,
                                  struct cpprof__stack_record **records,
                                  size_t *n, struct cpprof_error *error);
    bool child_begins_anew; /* its values are 0 after a fork */
};

extern const struct cpprof__builtin cpprof__builtin_allocs;
extern const struct cpprof__builtin cpprof__builtin_heap;
extern const struct cpprof__builtin cpprof__builtin_heapleak;
extern const struct cpprof__builtin cpprof__builtin_block;
extern const struct cpprof__builtin cpprof__builtin_mutex;
extern const struct cpprof__builtin cpprof__builtin_goroutine;
extern const struct cpprof__builtin cpprof__builtin_threadcreate;
extern const struct cpprof__builtin cpprof__builtin_threadleak;

/* The one of that name, or NULL. */
const struct cpprof__builtin *
cpprof__registry_builtin(const char *name);

/* The custom profile behind it, or NULL. */
struct cpprof__custom;
struct cpprof__custom *
cpprof__registry_custom(const struct cpprof_profile *profile);

/* Around a fork, so that names and entries are complete in the child. */
void
cpprof__registry_in_child(void);

#endif
