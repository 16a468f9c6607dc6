/* SPDX-License-Identifier: MIT */
/* Shared by merging and comparing. */
#ifndef PROFILE_MERGE_H
#define PROFILE_MERGE_H

#include "profile/model/model.h"

/*
 * Give two profiles the same sample types, those that both have, in the order
 * of the first; and the same units, the finer one of each.
 *
 * Errors: CPPROF_INVALID with the reference's words.
 */
enum cpprof_status
cpprof__make_compatible(struct pprof_profile *a, struct pprof_profile *b,
                        struct cpprof_error *error);

#endif
