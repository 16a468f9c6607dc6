/* SPDX-License-Identifier: MIT */
/*
 * In builds with a sanitizer or for debugging (CPPROF_CHECKED), every public
 * call that makes or changes a profile ends with a look at all invariants, and
 * with abort() and a line on stderr when one is broken. In others it is
 * nothing.
 */
#ifndef PROFILE_DEBUG_H
#define PROFILE_DEBUG_H

#include "profile/model/model.h"

#ifdef CPPROF_CHECKED
/* A check that there is no memory for is left out. */
void
cpprof__debug_check(const struct cpprof_pprof *p);
#else
static inline void
cpprof__debug_check(const struct cpprof_pprof *p)
{
    (void)p;
}
#endif

#endif
