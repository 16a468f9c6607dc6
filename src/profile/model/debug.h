/* SPDX-License-Identifier: MIT */
/*
 * In builds with a sanitizer or for debugging (CPPROF_CHECKED), every public
 * call that makes or changes a profile checks all invariants at its end. If one
 * is broken it prints a line on stderr and aborts. In other builds this does
 * nothing.
 */
#ifndef PROFILE_DEBUG_H
#define PROFILE_DEBUG_H

#include "profile/model/model.h"

#ifdef CPPROF_CHECKED
/* The check is skipped when memory for it runs out. */
void
cpprof__debug_check(const struct pprof_profile *p);
#else
static inline void
cpprof__debug_check(const struct pprof_profile *p)
{
    (void)p;
}
#endif

#endif
