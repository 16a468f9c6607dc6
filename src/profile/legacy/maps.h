/* SPDX-License-Identifier: MIT */
/*
 * The end of a legacy profile: the names of Java's locations
 * (java_locations.c), and else the memory map (maps.c, remap.c) in all its
 * forms: /proc/PID/maps, brief "start-end: file (@offset) buildid", with "0x"
 * or without, behind log prefixes, with "$attribute" replaced by its value.
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
