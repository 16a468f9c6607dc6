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
#include "profile/model/model.h"

/* Append the executable mappings of the lines to p->mappings. */
enum cpprof_status
cpprof__parse_maps(struct cpprof__legacy_lines *lines, struct pprof_profile *p,
                   struct cpprof_error *error);

/* Join adjacent mappings, put the program's first. No location may have a
 * mapping yet. */
enum cpprof_status
cpprof__massage_maps(struct pprof_profile *p, struct cpprof_error *error);

/*
 * The last step of reading a legacy profile (remap.c). Locations and functions
 * are put in the order of their first use, unused ones are dropped, and every
 * location with an address other than 0 gets a mapping.
 */
enum cpprof_status
cpprof__remap(struct pprof_profile *p, struct cpprof_error *error);

/*
 * All three steps: parse, massage, remap. Afterwards every location has the
 * mapping that it lies in; a mapping is made up for those that lie in none.
 * `lines` may be at its end, for a profile without a memory map.
 */
enum cpprof_status
cpprof__read_maps(struct cpprof__legacy_lines *lines, struct pprof_profile *p,
                  struct cpprof_error *error);

/*
 * Skip the sections up to the one that a sentinel begins, and read_maps() that.
 * `line` is the line that was read last: it may be the sentinel.
 */
enum cpprof_status
cpprof__read_sections(struct cpprof__legacy_lines *lines,
                      struct cpprof__text line, struct pprof_profile *p,
                      struct cpprof_error *error);

#endif
