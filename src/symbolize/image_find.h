/* SPDX-License-Identifier: MIT */
/* The image of a mapping: where the profile says it is, or found by its build
 * id. */
#ifndef SYMBOLIZE_IMAGE_FIND_H
#define SYMBOLIZE_IMAGE_FIND_H

#include "symbolize/image.h"

#include <cpprof/pprof/symbolize.h>
#include <limits.h>

struct cpprof__wanted_image {
    const char *file;     /* where it is looked for first, or "" */
    const char *build_id; /* or "": any will do, */
    int64_t time_ns;      /* but none at `file` that came later; 0: any */
    struct cpprof__mapped_range range;
    const struct pprof_symbolize_options *options; /* who fetches, or NULL */
};

/*
 * Open the file itself; else the debug file that is installed for the build
 * id; else what options->fetch brings. *path is where it is.
 *
 * Errors: CPPROF_NOMEM; others say what is wrong with the file itself.
 */
enum cpprof_status
cpprof__find_image(struct cpprof__image *image,
                   const struct cpprof__wanted_image *wanted,
                   char path[PATH_MAX], struct cpprof_error *error);

#endif
