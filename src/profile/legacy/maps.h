/* SPDX-License-Identifier: MIT */
/*
 * The memory map at the end of a legacy profile, in all its forms:
 * /proc/PID/maps, brief "start-end: file (@offset) buildid", with "0x" or
 * without, behind log prefixes, with "$attribute" replaced by its value.
 *
 * Source: profile/legacy_profile.go ParseProcMaps, ParseMemoryMap,
 * profile.go massageMappings, setMain.
 */
#ifndef PROFILE_LEGACY_MAPS_H
#define PROFILE_LEGACY_MAPS_H

#include "profile/legacy/lines.h"
#include "profile/model.h"

/* Append the executable mappings of the lines to p->mappings. */
enum cpprof_status
cpprof__parse_maps(struct cpprof__lines *lines, struct cpprof_pprof *p,
                   struct cpprof_error *error);

/*
 * The same, then: join adjacent mappings, put the program's first, give every
 * location the mapping that it lies in, and those that lie in none one made
 * up for them.
 */
enum cpprof_status
cpprof__read_maps(struct cpprof__lines *lines, struct cpprof_pprof *p,
                  struct cpprof_error *error);

#endif
