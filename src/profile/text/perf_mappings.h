/* SPDX-License-Identifier: MIT */
/*
 * Mappings of the files that `perf script` prints. perf does not print where a
 * file was in memory. So its mapping is the pages from its lowest to its
 * highest address, with the same offset: perf prints offsets into files, and
 * tools that open the file find the right code.
 */
#ifndef PROFILE_TEXT_PERF_MAPPINGS_H
#define PROFILE_TEXT_PERF_MAPPINGS_H

#include "profile/model/model.h"

/*
 * Finish mappings whose start is their lowest and whose limit is their highest
 * address. First comes the one that is named like the process (comm: a string
 * of p), else the first that is neither kernel nor library.
 */
void
cpprof__perf_mappings(struct pprof_profile *p, uint32_t comm);

#endif
