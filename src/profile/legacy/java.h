/* SPDX-License-Identifier: MIT */
/* What Java's CPU profiles share with its heap and contention profiles. */
#ifndef PROFILE_LEGACY_JAVA_H
#define PROFILE_LEGACY_JAVA_H

#include "profile/legacy/lines.h"
#include "profile/model.h"

/*
 * Read the lines "0xADDRESS function (file:line)" that end a profile: they name
 * the locations of these addresses. Then cpprof__remap().
 */
enum cpprof_status
cpprof__read_java_locations(struct cpprof__lines *lines, struct cpprof_pprof *p,
                            struct cpprof_error *error);

#endif
