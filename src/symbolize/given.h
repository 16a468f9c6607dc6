/* SPDX-License-Identifier: MIT */
/* Binaries that the caller of pprof_symbolize() names. */
#ifndef SYMBOLIZE_GIVEN_H
#define SYMBOLIZE_GIVEN_H

#include "profile/model/model.h"

#include <cpprof/object.h>
#include <cpprof/pprof/symbolize.h>

struct cpprof__given {
    const char *path;
    char build_id[CPPROF_BUILD_ID_MAX]; /* "": none */
    uint64_t n_symbols;                 /* their bytes */
};

/*
 * Read the build ids of options->binaries into *given, an array from malloc.
 *
 * Errors: CPPROF_NOMEM; CPPROF_SYSTEM, CPPROF_BAD_DATA: one cannot be read, is
 *         no ELF file, or is of no mapping of the profile.
 */
enum cpprof_status
cpprof__given_read(const struct pprof_profile *p,
                   const struct pprof_symbolize_options *options,
                   struct cpprof__given **given, struct cpprof_error *error);

/* The path of the one of n that is for a mapping, of several the one with most
 * symbols; NULL: none is. */
const char *
cpprof__given_for(const struct cpprof__given *given, size_t n,
                  const struct pprof_profile *p, size_t mapping);

#endif
