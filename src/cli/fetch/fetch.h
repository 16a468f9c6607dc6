/* SPDX-License-Identifier: MIT */
/*
 * Profiles from URLs. All that a command line names are asked for at once. They
 * are read one after the other, in its order, while others still arrive.
 * Source: internal/driver/fetch.go.
 */
#ifndef CLI_FETCH_H
#define CLI_FETCH_H

#include "cli/fetch/url.h"

#include <cpprof/pprof/profile.h>

struct cpprof__fetch;

/*
 * Ask for every URL among the sources; others are left alone. *fetch is NULL
 * when there are none. URLs that do not answer fail when they are read.
 *
 * sources, options  have to stay.
 */
enum cpprof_status
cpprof__fetch_begin(char *const *sources, size_t n,
                    const struct cpprof__fetch_options *options,
                    struct cpprof__fetch **fetch, struct cpprof_error *error);

/* Is this source the next URL to be read? */
bool
cpprof__fetch_is_next(const struct cpprof__fetch *fetch, const char *source);

/*
 * Wait for the next URL and read its profile. *url is what was asked for, and
 * lives as long as fetch.
 */
enum cpprof_status
cpprof__fetch_read(struct cpprof__fetch *fetch, struct pprof_profile **profile,
                   const char **url, struct cpprof_error *error);

/* NULL does nothing. Ends requests that are still under way. */
void
cpprof__fetch_free(struct cpprof__fetch *fetch);

#endif
