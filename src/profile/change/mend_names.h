/* SPDX-License-Identifier: MIT */
/* Names that servers of profiles refuse. */
#ifndef PROFILE_MEND_NAMES_H
#define PROFILE_MEND_NAMES_H

#include <cpprof/pprof/profile.h>

/* Give sample types, units and the default type names of letters, digits and
 * '_', and a period that lacks one a type. say: told of each sample type that
 * has another name now; may be NULL. Errors: CPPROF_NOMEM. */
enum cpprof_status
cpprof__mend_names(struct pprof_profile *p,
                   void (*say)(void *ctx, const char *line), void *ctx,
                   struct cpprof_error *error);

#endif
