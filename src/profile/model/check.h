/* SPDX-License-Identifier: MIT */
/* Parts of pprof_check(), and who calls it when. */
#ifndef PROFILE_CHECK_H
#define PROFILE_CHECK_H

#include "profile/model/model.h"

/* Mappings, functions, locations and lines. */
enum cpprof_status
cpprof__check_tables(const struct pprof_profile *p, struct cpprof_error *error);

/*
 * In builds with a sanitizer or for debugging (CPPROF_CHECKED), every public
 * call that makes or changes a profile checks all invariants at its end. If one
 * is broken it prints a line on stderr and aborts; the check is skipped when
 * memory for it runs out. In other builds this does nothing.
 */
#ifdef CPPROF_CHECKED
void
cpprof__debug_check(const struct pprof_profile *p);
#else
static inline void
cpprof__debug_check(const struct pprof_profile *p)
{
}
#endif

#endif
