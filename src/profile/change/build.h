/* SPDX-License-Identifier: MIT */
/* What the calls of <cpprof/pprof/build.h> share. */
#ifndef PROFILE_BUILD_H
#define PROFILE_BUILD_H

#include "profile/model/model.h"
#include <cpprof/pprof/build.h>

/* The number of a copied text, which may be NULL. Errors: CPPROF_NOMEM. */
enum cpprof_status
cpprof__build_string(struct pprof_profile *p, const char *text,
                     uint32_t *string, struct cpprof_error *error);

/* CPPROF_INVALID unless index is below n. */
enum cpprof_status
cpprof__build_index(const char *what, size_t index, size_t n,
                    struct cpprof_error *error);

/* CPPROF_LIMIT when there are n already, and one more has no index. */
enum cpprof_status
cpprof__build_room(const char *what, size_t n, struct cpprof_error *error);

#endif
