/* SPDX-License-Identifier: MIT */
/*
 * Stacks as lines of text: collapsed ("folded") stacks and what `perf script`
 * prints. Readers are like those of the legacy formats (legacy/legacy.h).
 */
#ifndef PROFILE_TEXT_TEXT_H
#define PROFILE_TEXT_TEXT_H

#include "profile/legacy/legacy.h"
#include "profile/proto/sink.h"

cpprof__legacy_reader cpprof__read_collapsed;   /* collapsed.c */
cpprof__legacy_reader cpprof__read_perf_script; /* perf_script.c */

/* Write the values of one sample type. */
void
cpprof__write_collapsed(const struct pprof_profile *p, size_t type,
                        struct cpprof__sink *out);
void
cpprof__write_perf_script(const struct pprof_profile *p, size_t type,
                          struct cpprof__sink *out);

#endif
