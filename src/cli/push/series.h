/* SPDX-License-Identifier: MIT */
/* What a file is called at a server of profiles. */
#ifndef CLI_PUSH_SERIES_H
#define CLI_PUSH_SERIES_H

#include <cpprof/pprof/profile.h>

#include <stdbool.h>

#define CPPROF__SERIES_BYTES 128

/* The kind that a profile is, by its sample types and the name of its file. A
 * profile that is of none is a series of its own, called after its default
 * sample type; else series is "". */
uint32_t
cpprof__series_of(const struct pprof_profile *profile, const char *path,
                  char series[CPPROF__SERIES_BYTES]);

/* Make of a profile what servers take: other names for sample types and units,
 * which is said, a period that has a type, and a time, which is now where it
 * has none. */
enum cpprof_status
cpprof__series_mend(struct pprof_profile *profile, const char *path,
                    int64_t now_ns, struct cpprof_error *error);

/* The name of its program, where nobody says what the service is. */
void
cpprof__series_service(const struct pprof_profile *profile, char *name,
                       size_t n);

#endif
