/* SPDX-License-Identifier: MIT */
/*
 * Profiles from URLs. All that a command line names are asked for at once. They
 * are read one after the other, in its order, while others still arrive.
 * Source: internal/driver/fetch.go.
 */
#ifndef CLI_FETCH_H
#define CLI_FETCH_H

#include "base/array.h"
#include "cli/fetch/url.h"

#include <cpprof/pprof/profile.h>

#include <stddef.h>
#include <stdint.h>

struct cpprof__fetch;

/*
 * Ask for every URL among the sources; others are left alone. *fetch is NULL
 * when there are none. URLs that do not answer fail when they are read.
 *
 * sources, options  have to stay until the last one is read.
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

/* --------------------------------------------------------- origins ---- */

/*
 * Where profiles came from: which server can name the addresses of which
 * mapping, and whether a copy is to be kept. Source: internal/driver/fetch.go,
 * internal/symbolz.
 */
struct cpprof__origin {
    char *key; /* build id, else file, else the URL */
    char *url; /* of the profile */
    uint64_t start;
};

/* Zero bytes is a valid one without profiles. */
struct cpprof__origins {
    const struct cpprof__fetch_options *options;
    struct cpprof__fetch *fetch; /* what is under way, or NULL */
    size_t n_profiles;           /* that were read from URLs */
    CPPROF__ARRAY(struct cpprof__origin) mappings;
};

/*
 * Note where the mappings of a profile came from. A mapping that has neither
 * build id nor file gets the URL for its file, so that merging keeps those of
 * different servers apart.
 */
enum cpprof_status
cpprof__origins_note(struct cpprof__origins *origins,
                     struct pprof_profile *profile, const char *url,
                     struct cpprof_error *error);

/*
 * Ask the servers for the names of addresses that have none. Failures are
 * reported on stderr. `force` also asks about mappings that have names.
 */
enum cpprof_status
cpprof__origins_symbolize(const struct cpprof__origins *origins,
                          struct pprof_profile *profile, bool force,
                          struct cpprof_error *error);

/* Take the URLs away that cpprof__origins_note() gave to mappings. */
enum cpprof_status
cpprof__origins_forget(const struct cpprof__origins *origins,
                       struct pprof_profile *profile,
                       struct cpprof_error *error);

/*
 * Keep a copy as pprof.BINARY.TYPES.NNN.pb.gz in $PPROF_TMPDIR, ~/pprof or
 * /tmp, if a profile came from a URL, and say so on stderr. Failing is no
 * failure of the command.
 */
void
cpprof__origins_save(const struct cpprof__origins *origins,
                     const struct pprof_profile *profile);

/* Ends what is under way, too. */
void
cpprof__origins_free(struct cpprof__origins *origins);

#endif
