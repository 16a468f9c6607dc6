/* SPDX-License-Identifier: MIT */
/*
 * Remembers for each mapping of fetched profiles which server can name its
 * addresses, by build id or file; a mapping with neither gets the URL as its
 * file name until the names are found.
 *
 * Source: internal/driver/fetch.go, internal/symbolz.
 */
#include "cli/fetch/fetch.h"

#include "base/status.h"

#include <cpprof/pprof/change.h>

#include <stdlib.h>
#include <string.h>

/* Note one mapping; *unnamed when its key is the URL. */
static bool
note_mapping(struct cpprof__origins *r, const struct pprof_profile *p,
             size_t mapping, const char *url, bool *unnamed)
{
    const struct pprof_mapping *m = &pprof_mappings(p)[mapping];
    struct cpprof__origin *noted = CPPROF__ARRAY_ADD(&r->mappings);
    const char *key;

    if (!noted)
        return false;
    *unnamed = !m->build_id && !m->file;
    key = *unnamed ? url
                   : pprof_text(p, m->build_id ? m->build_id : m->file, NULL);
    *noted = (struct cpprof__origin){strdup(key), strdup(url), m->start};
    return noted->key && noted->url;
}

enum cpprof_status
cpprof__origins_note(struct cpprof__origins *r, struct pprof_profile *p,
                     const char *url, struct cpprof_error *error)
{
    size_t n = pprof_mapping_count(p), i;
    enum cpprof_status status = CPPROF_OK;
    bool unnamed;

    for (i = 0; i < n && status == CPPROF_OK; i++) {
        if (!note_mapping(r, p, i, url, &unnamed))
            return cpprof__fail_nomem(error);
        if (unnamed)
            status = pprof_set_mapping_file(p, i, url, error);
    }
    r->n_profiles++;
    return status;
}

/* Was this name given to a mapping that had none? */
static bool
is_given(const struct cpprof__origins *r, const char *file)
{
    size_t i;

    for (i = 0; i < r->mappings.n; i++)
        if (strcmp(r->mappings.at[i].key, file) == 0 &&
            strcmp(r->mappings.at[i].url, file) == 0)
            return true;
    return false;
}

enum cpprof_status
cpprof__origins_forget(const struct cpprof__origins *r, struct pprof_profile *p,
                       struct cpprof_error *error)
{
    size_t n = pprof_mapping_count(p), i;
    enum cpprof_status status = CPPROF_OK;

    for (i = 0; r->mappings.n && i < n && status == CPPROF_OK; i++) {
        const struct pprof_mapping *m = &pprof_mappings(p)[i];

        if (!m->build_id && is_given(r, pprof_text(p, m->file, NULL)))
            status = pprof_set_mapping_file(p, i, "", error);
    }
    return status;
}

void
cpprof__origins_free(struct cpprof__origins *r)
{
    size_t i;

    cpprof__fetch_free(r->fetch);
    for (i = 0; i < r->mappings.n; i++) {
        free(r->mappings.at[i].key);
        free(r->mappings.at[i].url);
    }
    free(r->mappings.at);
    memset(r, 0, sizeof *r);
}
