/* SPDX-License-Identifier: MIT */
/* The parts of pprof_check(). */
#ifndef PROFILE_CHECK_H
#define PROFILE_CHECK_H

#include "profile/model/model.h"

/* Mappings, functions, locations and lines. */
enum cpprof_status
cpprof__check_tables(const struct pprof_profile *p, struct cpprof_error *error);

/* How tables, strings and label sets lie in memory. All indices are known to
 * be inside of their tables. */
enum cpprof_status
cpprof__check_layout(const struct pprof_profile *p, struct cpprof_error *error);

#endif
