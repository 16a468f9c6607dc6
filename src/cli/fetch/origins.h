/* SPDX-License-Identifier: MIT */
/*
 * Where profiles came from: which server can name the addresses of which
 * mapping, and whether a copy is to be kept. Source: internal/driver/fetch.go,
 * internal/symbolz.
 */
#ifndef CLI_FETCH_ORIGINS_H
#define CLI_FETCH_ORIGINS_H

#include "cli/fetch/fetch.h"

#include <stddef.h>
#include <stdint.h>

/* Zero bytes is a valid one without profiles. */
struct cpprof__origins {
    const struct cpprof__fetch_options *options;
    struct cpprof__fetch *fetch; /* what is under way, or NULL */
    size_t n_profiles;           /* that were read from URLs */
    struct cpprof__origin {
        char *key; /* build id, else file, else the URL */
        char *url; /* of the profile */
        uint64_t start;
    } * mappings;
    size_t n;
    size_t capacity;
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
 * Ask the servers for the names of addresses that have none; ctx is the struct
 * cpprof__origins. Failures are reported on stderr. `force` also asks about
 * mappings that have names.
 */
enum cpprof_status
cpprof__origins_symbolize(void *ctx, struct pprof_profile *profile, bool force,
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
