/* SPDX-License-Identifier: MIT */
/* The end of every legacy profile of Java: what its locations are called. */
#ifndef PROFILE_LEGACY_JAVA_H
#define PROFILE_LEGACY_JAVA_H

#include "profile/legacy/lines.h"
#include "profile/model/model.h"

/*
 * Read the table "0xADDRESS function (file:line)" to its end, and finish the
 * profile: its locations, which so far are addresses and no two the same, get
 * functions, order and mappings as cpprof__remap() gives them, and lose their
 * addresses, which mean nothing outside the process.
 *
 * Errors: CPPROF_BAD_DATA "parsing sample LINE: ...", "missing sample type
 *         information"; CPPROF_NOMEM.
 * Source: legacy_java_profile.go parseJavaLocations.
 */
enum cpprof_status
cpprof__read_java_locations(struct cpprof__legacy_lines *lines,
                            struct pprof_profile *p,
                            struct cpprof_error *error);

#endif
